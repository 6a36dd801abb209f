package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.internal.http.Watchdog.Watch;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class WatchdogTest {
    private final CallThreads threads = new CallThreads();
    private final Watch watch = new Watchdog(threads).watch(Deadline.in(Duration.ZERO), null);
    private final CountDownLatch closing = new CountDownLatch(1);
    private final CountDownLatch goesOn = new CountDownLatch(1);
    private final AtomicBoolean closed = new AtomicBoolean();

    @AfterEach
    void stopThreads() {
        threads.timer().shutdownNow();
        threads.background().shutdownNow();
    }

    private void awaitBackground() throws InterruptedException {
        threads.timer().shutdown();
        assertThat(threads.timer().awaitTermination(30, TimeUnit.SECONDS)).isTrue();
        threads.background().shutdown();
        assertThat(threads.background().awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    }

    private void closesSlowly() {
        closing.countDown();
        try {
            goesOn.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void connectionOfAnAttemptThatEndsMeanwhileIsLeftToTheNextCall() throws Exception {
        watch.exit(this::closesSlowly);
        watch.exit(() -> closed.set(true));
        assertThat(closing.await(30, TimeUnit.SECONDS)).isTrue();
        watch.ended();
        goesOn.countDown();
        awaitBackground();
        assertThat(closed).isFalse();
    }

    @Test
    void requestThatTheCallerGaveUpIsClosedAlsoWhenItsAttemptIsOver() throws Exception {
        watch.ended();
        watch.exit(() -> closed.set(true));
        watch.abort();
        awaitBackground();
        assertThat(closed).isTrue();
    }
}
