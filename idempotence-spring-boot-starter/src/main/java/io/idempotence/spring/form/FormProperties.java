package io.idempotence.spring.form;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * The properties {@code idempotence.form.*}. An unknown one fails the start.
 *
 * @param enabled Whether forms may carry a token in a hidden field. Default: true with Thymeleaf, or if the console may resolve records. The
 *     body of a form that a browser posts is then read before its handler, which finds the fields in its parameters, not in its input
 *     stream. Forms that programs post, such as webhooks, keep their bodies.
 * @param expiresAfter How long a form can be submitted after it was rendered, 1m to the retention. Default: 12h, or the retention if that
 *     is shorter.
 * @param maxWait How long the second click of a double click waits for the result of the first one, 0s to 10m, in whole seconds.
 */
@ConfigurationProperties(prefix = "idempotence.form", ignoreUnknownFields = false)
record FormProperties(
        @Nullable Boolean enabled,
        @Nullable Duration expiresAfter,
        @DefaultValue("10s") Duration maxWait) {
    private static final Duration HALF_A_DAY = Duration.ofHours(12);

    /** How long a second click waits; fails if that is out of range. */
    Duration checkedMaxWait() {
        boolean isInSeconds = maxWait.getNano() == 0;
        if (maxWait.isNegative() || maxWait.compareTo(Duration.ofMinutes(10)) > 0 || !isInSeconds) {
            throw new InvalidConfigurationPropertyValueException(
                    "idempotence.form.max-wait", inUnits(maxWait), "It must be 0s to 10m, in whole seconds.");
        }
        return maxWait;
    }

    /** How long a form can be submitted, given how long its ID is remembered. */
    Duration lifetime(Duration retention) {
        if (expiresAfter == null) {
            return retention.compareTo(HALF_A_DAY) < 0 ? retention : HALF_A_DAY;
        }
        if (expiresAfter.compareTo(Duration.ofMinutes(1)) < 0 || expiresAfter.compareTo(retention) > 0) {
            throw new InvalidConfigurationPropertyValueException(
                    "idempotence.form.expires-after",
                    inUnits(expiresAfter),
                    "It must be at least 1m, and at most the retention, which is "
                            + inUnits(retention)
                            + ". A form that can be submitted after its ID is forgotten could run twice.");
        }
        return expiresAfter;
    }

    /** A duration as it is written in a file of properties. */
    private static String inUnits(Duration duration) {
        long millis = duration.toMillis();
        if (millis % 1_000 != 0 || millis == 0) {
            return millis + "ms";
        }
        long seconds = millis / 1_000;
        if (seconds % 60 != 0) {
            return seconds + "s";
        }
        return seconds % 3_600 == 0 ? seconds / 3_600 + "h" : seconds / 60 + "m";
    }
}
