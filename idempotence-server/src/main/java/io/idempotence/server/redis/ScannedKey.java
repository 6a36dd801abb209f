package io.idempotence.server.redis;

/**
 * A key that a scan found.
 *
 * @param reply of the script that read it; a {@link RuntimeException} if that was an error
 */
record ScannedKey(byte[] key, Object reply) {}
