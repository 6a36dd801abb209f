package io.idempotence.client.internal.http;

import java.time.Duration;
import java.util.Collection;
import java.util.Optional;
import java.util.regex.Pattern;

/** The preference that lets the server hold a request while the first attempt runs (RFC 7240). */
public final class WaitPreference {
    private static final Pattern CHOSEN = Pattern.compile("(?i)(^|[,;\\s])wait\\s*=");

    /** The time for the response after the server's wait. */
    private static final long RESPONSE_MILLIS = 500;

    private WaitPreference() {}

    /**
     * The preference to add: in whole seconds, and shorter than the read timeout.
     *
     * @param wished how long the server may hold the request
     * @param readTimeoutMillis the read timeout of the request
     * @param preferences the request's own preferences
     * @return empty if the caller chose a wait, or if there is no time for one
     */
    public static Optional<String> of(Duration wished, long readTimeoutMillis, Collection<String> preferences) {
        long bearable = Math.max(0, readTimeoutMillis - RESPONSE_MILLIS) / 1000;
        long seconds = Math.min((wished.toMillis() + 999) / 1000, bearable);
        return seconds > 0 && !isChosen(preferences) ? Optional.of("wait=" + seconds) : Optional.empty();
    }

    private static boolean isChosen(Collection<String> preferences) {
        return !preferences.isEmpty()
                && preferences.stream().anyMatch(value -> CHOSEN.matcher(value).find());
    }
}
