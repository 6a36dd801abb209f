package io.idempotence.spring.method;

/**
 * A reason why a method with {@code @Idempotent} cannot work.
 *
 * @param where the method
 * @param what what was found
 * @param action how to fix it
 */
record OperationFault(String where, String what, String action) {}
