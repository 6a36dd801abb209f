package io.idempotence.client.internal.http;

import io.idempotence.http.IdempotenceHeaders;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.OptionalLong;

/** A parser of the wait that a server requests (RFC 9110, section 10.2.3, and the header in milliseconds). */
public final class RetryAfter {
    /** Longer than any deadline, but small enough to add to. */
    private static final long VERY_LONG = Long.MAX_VALUE / 4;

    private RetryAfter() {}

    /**
     * The milliseconds to wait: never less than the server requests, and more by a random share, so that callers that were rejected
     * together do not return together.
     *
     * @param leastSpread the smallest spread in milliseconds; a fifth of the requested time if that is more
     * @param deadline cuts the spread, but not the requested time
     * @param random a number from 0 to 1
     * @return 0 if the response requests no wait
     */
    public static long jittered(Observation seen, Instant now, long leastSpread, Deadline deadline, double random) {
        long asked = millis(seen, now).orElse(0);
        if (asked == 0 || !deadline.outlasts(asked)) {
            return asked;
        }
        long spread = Math.max(leastSpread, asked / 5);
        return asked + Math.round(Math.max(0, Math.min(spread, deadline.longestWait() - asked)) * random);
    }

    /** The milliseconds to wait, 0 or more; empty if the response contains no wait, or an unknown form of it. */
    public static OptionalLong millis(Observation seen, Instant now) {
        for (String value : seen.values(IdempotenceHeaders.RETRY_AFTER_MS)) {
            OptionalLong millis = digits(value.trim(), 1);
            if (millis.isPresent()) {
                return millis;
            }
        }
        for (String value : seen.values(IdempotenceHeaders.RETRY_AFTER)) {
            OptionalLong millis = digits(value.trim(), 1000);
            if (millis.isEmpty()) {
                millis = date(value.trim(), now);
            }
            if (millis.isPresent()) {
                return millis;
            }
        }
        return OptionalLong.empty();
    }

    private static OptionalLong digits(String text, long unit) {
        if (text.isEmpty() || !text.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return OptionalLong.empty();
        }
        if (text.length() > 15) {
            return OptionalLong.of(VERY_LONG);
        }
        return OptionalLong.of(Long.parseLong(text) * unit);
    }

    private static OptionalLong date(String text, Instant now) {
        try {
            Instant then = ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME)
                    .toInstant();
            return OptionalLong.of(Math.max(0, then.toEpochMilli() - now.toEpochMilli()));
        } catch (DateTimeParseException e) {
            return OptionalLong.empty();
        }
    }
}
