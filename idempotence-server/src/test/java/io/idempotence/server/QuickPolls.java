package io.idempotence.server;

import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * An extension that makes Awaitility poll every few milliseconds in all tests. Thousands of tests wait for conditions that are soon true.
 */
public final class QuickPolls implements BeforeAllCallback {
    private static final Duration EVERY = Duration.ofMillis(5);

    @Override
    public void beforeAll(ExtensionContext context) {
        Awaitility.setDefaultPollDelay(EVERY);
        Awaitility.setDefaultPollInterval(EVERY);
    }
}
