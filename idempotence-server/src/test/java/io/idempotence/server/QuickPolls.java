package io.idempotence.server;

import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Looks for a condition every few milliseconds in all tests: thousands of them wait for something that takes no longer. */
public final class QuickPolls implements BeforeAllCallback {
    private static final Duration EVERY = Duration.ofMillis(5);

    @Override
    public void beforeAll(ExtensionContext context) {
        Awaitility.setDefaultPollDelay(EVERY);
        Awaitility.setDefaultPollInterval(EVERY);
    }
}
