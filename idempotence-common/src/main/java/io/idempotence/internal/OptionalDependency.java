package io.idempotence.internal;

/** A library that only some services need. */
public final class OptionalDependency {
    private OptionalDependency() {}

    /**
     * Fails unless a library is on the class path.
     *
     * @param user the class that needs the library
     * @param className a class in the library
     * @param fix the message: what needs the library, and what to add
     * @throws IllegalStateException with the message {@code fix} if the class cannot be found
     */
    public static void require(Class<?> user, String className, String fix) {
        try {
            Class.forName(className, false, user.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(fix, e);
        }
    }
}
