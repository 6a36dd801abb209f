package io.idempotence.internal;

/** An exception that ends several calls, because they shared one connection. It is a single failure of the server. Thread-safe. */
public interface SharedFailure {
    /**
     * Whether an observer counts this failure. It does so once, for whichever of the calls it sees first.
     *
     * @param observer the observer, by identity
     * @return true the first time
     */
    boolean countsFor(Object observer);

    /**
     * Whether an observer counts the failure of a call.
     *
     * @param thrown the exception that ended the call
     * @return false if it has counted the failure for another call
     */
    static boolean counts(Throwable thrown, Object observer) {
        return Causes.of(thrown)
                .allMatch(cause -> !(cause instanceof SharedFailure shared) || shared.countsFor(observer));
    }
}
