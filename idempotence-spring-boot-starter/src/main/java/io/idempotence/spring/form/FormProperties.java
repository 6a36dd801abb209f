package io.idempotence.spring.form;

import io.idempotence.internal.MaxWait;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.internal.SpringDurations;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

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
        if (!MaxWait.isAllowed(maxWait) || !isInSeconds) {
            throw SetUpException.ofProperty(
                    "idempotence.form.max-wait",
                    SpringDurations.text(maxWait),
                    "it must be 0s to 10m, in whole seconds",
                    "Set idempotence.form.max-wait to a value such as 10s, or remove it.",
                    null);
        }
        return maxWait;
    }

    /** How long a form can be submitted, given how long its ID is remembered. */
    Duration lifetime(Duration retention) {
        if (expiresAfter == null) {
            return retention.compareTo(HALF_A_DAY) < 0 ? retention : HALF_A_DAY;
        }
        if (expiresAfter.compareTo(Duration.ofMinutes(1)) < 0 || expiresAfter.compareTo(retention) > 0) {
            throw SetUpException.ofProperty(
                    "idempotence.form.expires-after",
                    SpringDurations.text(expiresAfter),
                    "it must be at least 1m, and at most the retention, which is " + SpringDurations.text(retention)
                            + "; a form that can be submitted after its ID is forgotten could run twice",
                    "Lower idempotence.form.expires-after, or raise idempotence.server.policy.retention.",
                    null);
        }
        return expiresAfter;
    }
}
