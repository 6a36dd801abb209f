package io.idempotence.internal;

import java.util.Objects;
import java.util.stream.Stream;

/** The causes of an exception. Containers, pools and drivers wrap exceptions. */
public final class Causes {
    /** A limit, because causes may form a cycle. */
    private static final int MOST = 20;

    private Causes() {}

    /**
     * An exception and its causes, outermost first.
     *
     * @param thrown the exception
     * @return itself, its cause and so on, at most 20
     */
    public static Stream<Throwable> of(Throwable thrown) {
        return Stream.iterate(thrown, Objects::nonNull, Throwable::getCause).limit(MOST);
    }

    /**
     * Whether an exception or one of its causes is of a class.
     *
     * @param thrown the exception
     * @param type the class
     * @return whether one of {@link #of} is
     */
    public static boolean has(Throwable thrown, Class<? extends Throwable> type) {
        return of(thrown).anyMatch(type::isInstance);
    }
}
