package io.idempotence.internal;

import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Durations as a person writes and reads them. */
public final class Durations {
    private static final Pattern SHORT = Pattern.compile("([0-9]{1,9})\\s*(ms|s|m|h|d)");

    private Durations() {}

    /**
     * Parses a duration.
     *
     * @param text a number and a unit, such as {@code 500ms}, {@code 30s}, {@code 5m}, {@code 2h} or {@code 1d}; or ISO-8601
     * @throws IllegalArgumentException if it is neither
     */
    public static Duration parse(String text) {
        Matcher form = SHORT.matcher(text);
        if (!form.matches()) {
            try {
                return Duration.parse(text);
            } catch (DateTimeParseException e) {
                throw new IllegalArgumentException(
                        "'" + text + "' is no duration; write a number and a unit: 500ms, 30s, 5m, 2h or 1d", e);
            }
        }
        long number = Long.parseLong(form.group(1));
        return switch (form.group(2)) {
            case "ms" -> Duration.ofMillis(number);
            case "s" -> Duration.ofSeconds(number);
            case "m" -> Duration.ofMinutes(number);
            case "h" -> Duration.ofHours(number);
            default -> Duration.ofDays(number);
        };
    }

    /** Returns the two largest units of a duration, such as {@code 3d 4h}, {@code 12m} or {@code 80ms}; {@code 0s} if it is not above zero. */
    public static String shown(Duration duration) {
        if (duration.isNegative() || duration.toMillis() == 0) {
            return "0s";
        }
        long seconds = duration.toSeconds();
        if (seconds == 0) {
            return duration.toMillis() + "ms";
        }
        long[] parts = {seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60};
        String[] units = {"d", "h", "m", "s"};
        int largest = 0;
        while (parts[largest] == 0) {
            largest++;
        }
        boolean withNext = largest + 1 < parts.length && parts[largest + 1] > 0;
        return parts[largest] + units[largest] + (withNext ? " " + parts[largest + 1] + units[largest + 1] : "");
    }
}
