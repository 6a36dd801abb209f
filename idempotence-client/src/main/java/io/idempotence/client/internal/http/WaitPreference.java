package io.idempotence.client.internal.http;

import java.time.Duration;
import java.util.Collection;
import java.util.Optional;
import java.util.regex.Pattern;

/** Asks the server to hold a request while the first attempt runs (RFC 7240). */
public final class WaitPreference {
    private static final Pattern CHOSEN = Pattern.compile("(?i)(^|[,;\\s])wait\\s*=");

    /** What a response needs to come after a wait. */
    private static final long ANSWER_MILLIS = 500;

    private WaitPreference() {}

    /**
     * The preference to add: in whole seconds, and not for longer than this side will listen.
     *
     * @param wished how long the server may hold the request
     * @param readTimeoutMillis when this side stops listening
     * @param preferences those that the request has
     * @return empty if the caller chose a wait himself, or if there is no time for one
     */
    public static Optional<String> of(Duration wished, long readTimeoutMillis, Collection<String> preferences) {
        long bearable = Math.max(0, readTimeoutMillis - ANSWER_MILLIS) / 1000;
        long seconds = Math.min((wished.toMillis() + 999) / 1000, bearable);
        boolean chosen =
                preferences.stream().anyMatch(value -> CHOSEN.matcher(value).find());
        return seconds > 0 && !chosen ? Optional.of("wait=" + seconds) : Optional.empty();
    }
}
