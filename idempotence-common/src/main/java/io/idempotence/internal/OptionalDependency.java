package io.idempotence.internal;

/** A library that only some services need. */
public final class OptionalDependency {
    private OptionalDependency() {}

    /**
     * Fails unless a library is there.
     *
     * @param user the class that needs the library
     * @param className of a class in the library
     * @param fix what needs the library, and what to add
     * @throws IllegalStateException if the class cannot be found; says {@code fix}
     */
    public static void require(Class<?> user, String className, String fix) {
        try {
            Class.forName(className, false, user.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(fix, e);
        }
    }
}
