package io.idempotence.cli;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Durations as a person writes and reads them. */
final class Durations implements ITypeConverter<Duration> {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,9})(ms|s|m|h|d)");

    /** Reads {@code 500ms}, {@code 30s}, {@code 5m}, {@code 2h} or {@code 1d}. */
    @Override
    public Duration convert(String text) {
        Matcher form = FORM.matcher(text);
        if (!form.matches()) {
            throw new TypeConversionException("a time is a number and a unit: 500ms, 30s, 5m, 2h or 1d");
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

    /** The two greatest units, such as {@code 3d 4h}, {@code 12m 5s} or {@code 80ms}. */
    static String shown(Duration time) {
        if (time.toDays() > 0) {
            return time.toDays() + "d " + time.toHoursPart() + "h";
        }
        if (time.toHours() > 0) {
            return time.toHours() + "h " + time.toMinutesPart() + "m";
        }
        if (time.toMinutes() > 0) {
            return time.toMinutes() + "m " + time.toSecondsPart() + "s";
        }
        return time.toSeconds() > 0 ? time.toSeconds() + "s" : time.toMillis() + "ms";
    }
}
