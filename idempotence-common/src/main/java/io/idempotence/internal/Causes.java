package io.idempotence.internal;

import java.util.Objects;
import java.util.stream.Stream;

/** The causes of an exception. Containers, pools and drivers wrap exceptions. */
public final class Causes {
    /** A limit, because causes may form a cycle. */
    private static final int MOST = 20;

    private Causes() {}

    /** {@return an exception and its causes, outermost first, at most 20} */
    public static Stream<Throwable> of(Throwable thrown) {
        return Stream.iterate(thrown, Objects::nonNull, Throwable::getCause).limit(MOST);
    }

    /** {@return whether an exception or one of its causes, as in {@link #of}, is of a class} */
    public static boolean has(Throwable thrown, Class<? extends Throwable> type) {
        return of(thrown).anyMatch(type::isInstance);
    }
}
