package io.idempotence.spring.internal;

import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Durations in messages, as somebody writes them in a file of properties: {@code 500ms}, {@code 10s}, {@code 24h}. */
public final class SpringDurations {
    private static final Pattern ISO = Pattern.compile("\\bPT[-\\dHMS.]*\\d[HMS]\\b");

    private SpringDurations() {}

    /** Returns a duration in the largest unit without a fraction. */
    public static String text(Duration duration) {
        long millis = duration.toMillis();
        if (millis % 1_000 != 0) {
            return millis + "ms";
        }
        long seconds = millis / 1_000;
        if (seconds % 60 != 0 || seconds == 0) {
            return seconds + "s";
        }
        return seconds % 3_600 == 0 ? seconds / 3_600 + "h" : seconds / 60 + "m";
    }

    /** Returns a message with its ISO-8601 durations, such as {@code PT10S}, in this form. */
    public static String within(String message) {
        return ISO.matcher(message).replaceAll(found -> Matcher.quoteReplacement(inThisForm(found.group())));
    }

    /** A message may quote a duration that is malformed. */
    private static String inThisForm(String found) {
        try {
            return text(Duration.parse(found));
        } catch (DateTimeParseException e) {
            return found;
        }
    }
}
