package io.idempotence.server;

import static org.awaitility.pollinterval.IterativePollInterval.iterative;

import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * An extension that makes Awaitility poll after a few milliseconds in all tests, because thousands of them wait for conditions that are soon
 * true, and less and less often after that. On a busy machine they may take many seconds, which is no failure.
 */
public final class AwaitilityDefaults implements BeforeAllCallback {
    private static final Duration FIRST = Duration.ofMillis(2);
    private static final Duration LONGEST = Duration.ofMillis(50);
    private static final Duration AT_MOST = Duration.ofMinutes(1);

    @Override
    public void beforeAll(ExtensionContext context) {
        Awaitility.setDefaultPollDelay(FIRST);
        Awaitility.setDefaultPollInterval(iterative(AwaitilityDefaults::longer, FIRST));
        Awaitility.setDefaultTimeout(AT_MOST);
    }

    private static Duration longer(Duration interval) {
        Duration next = interval.multipliedBy(3).dividedBy(2);
        return next.compareTo(LONGEST) < 0 ? next : LONGEST;
    }
}
