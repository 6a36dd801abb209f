package io.idempotence.internal;

import java.util.Objects;
import java.util.stream.Stream;

/** Why something was thrown: containers, pools and drivers wrap. */
public final class Causes {
    /** Causes may go round in circles. */
    private static final int MOST = 20;

    private Causes() {}

    /**
     * An exception and what caused it, outermost first.
     *
     * @param thrown the exception
     * @return itself, its cause and so on, at most 20
     */
    public static Stream<Throwable> of(Throwable thrown) {
        return Stream.iterate(thrown, Objects::nonNull, Throwable::getCause).limit(MOST);
    }

    /**
     * Whether an exception, or one of those that caused it, is of a class.
     *
     * @param thrown the exception
     * @param type the class
     * @return whether one of {@link #of} is
     */
    public static boolean has(Throwable thrown, Class<? extends Throwable> type) {
        return of(thrown).anyMatch(type::isInstance);
    }
}
