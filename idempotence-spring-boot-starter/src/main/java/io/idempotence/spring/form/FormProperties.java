package io.idempotence.spring.form;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code idempotence.form.*}.
 *
 * @param enabled whether forms may carry a token in a hidden field
 * @param expiresAfter how long a form can be submitted after it was rendered. At most the retention of the operations that forms post to
 * @param maxWait how long the second click of a double click waits for the result of the first one
 */
@ConfigurationProperties(prefix = "idempotence.form", ignoreUnknownFields = false)
record FormProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("12h") Duration expiresAfter,
        @DefaultValue("10s") Duration maxWait) {}
