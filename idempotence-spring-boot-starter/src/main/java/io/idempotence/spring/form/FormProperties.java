package io.idempotence.spring.form;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.convert.DurationStyle;

/**
 * The properties {@code idempotence.form.*}. An unknown one fails the start.
 *
 * @param enabled Whether forms may carry a token in a hidden field. Default: true with Thymeleaf, or if the console may resolve records. The
 *     body of a form that a browser posts is then read before its handler, which finds the fields in its parameters, not in its input
 *     stream. Forms that programs post, such as webhooks, keep their bodies.
 * @param expiresAfter How long a form can be submitted after it was rendered, at most the retention. Default: 12h, or the retention if that
 *     is shorter.
 * @param maxWait How long the second click of a double click waits for the result of the first one.
 */
@ConfigurationProperties(prefix = "idempotence.form", ignoreUnknownFields = false)
record FormProperties(
        @Nullable Boolean enabled,
        @Nullable Duration expiresAfter,
        @DefaultValue("10s") Duration maxWait) {
    private static final Duration HALF_A_DAY = Duration.ofHours(12);

    /** How long a form can be submitted, given how long its ID is remembered. */
    Duration lifetime(Duration retention) {
        if (expiresAfter == null) {
            return retention.compareTo(HALF_A_DAY) < 0 ? retention : HALF_A_DAY;
        }
        if (expiresAfter.compareTo(Duration.ofMinutes(1)) < 0 || expiresAfter.compareTo(retention) > 0) {
            throw new InvalidConfigurationPropertyValueException(
                    "idempotence.form.expires-after",
                    expiresAfter,
                    "It must be at least 1m, and at most the retention, which is "
                            + DurationStyle.SIMPLE.print(retention, ChronoUnit.SECONDS)
                            + ". A form that can be submitted after its ID is forgotten could run twice.");
        }
        return expiresAfter;
    }
}
