package io.idempotence.server;

import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * An extension that makes Awaitility poll every few milliseconds in all tests, because thousands of them wait for conditions that are soon
 * true. On a busy machine they may take many seconds, which is no failure.
 */
public final class AwaitilityDefaults implements BeforeAllCallback {
    private static final Duration EVERY = Duration.ofMillis(5);
    private static final Duration AT_MOST = Duration.ofMinutes(1);

    @Override
    public void beforeAll(ExtensionContext context) {
        Awaitility.setDefaultPollDelay(EVERY);
        Awaitility.setDefaultPollInterval(EVERY);
        Awaitility.setDefaultTimeout(AT_MOST);
    }
}
