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
    void everyRequestIsWatchedWhileOthersBeginAndEnd() throws Exception {
        Watchdog watchdog = new Watchdog(threads);
        CountDownLatch all = new CountDownLatch(20);
        for (int i = 0; i < 20; i++) {
            watchdog.watch(Deadline.in(Duration.ofSeconds(30)), null).ended();
            AtomicBoolean first = new AtomicBoolean(true);
            watchdog.watch(Deadline.in(Duration.ofMillis(i)), null).exit(() -> {
                if (first.getAndSet(false)) {
                    all.countDown();
                }
            });
        }
        assertThat(all.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void exchangeThatNoThreadCouldCloseIsClosedWhenOneCan() throws Exception {
        AtomicBoolean limited = new AtomicBoolean(true);
        CountDownLatch refused = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        CallThreads few = new CallThreads(name -> task -> {
            if (limited.get() && name.equals("idempotence-background")) {
                refused.countDown();
                throw new OutOfMemoryError("unable to create native thread");
            }
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        });
        Watch late = new Watchdog(few).watch(Deadline.in(Duration.ZERO), null);
        late.exit(ended::countDown);
        assertThat(refused.await(30, TimeUnit.SECONDS)).isTrue();
        limited.set(false);
        assertThat(ended.await(10, TimeUnit.SECONDS)).isTrue();
        late.ended();
    }

    @Test
    void connectionThatCannotBeClosedKeepsNoOtherOpen() throws Exception {
        watch.exit(() -> {
            throw new NullPointerException("as HttpURLConnection may");
        });
        watch.exit(() -> closed.set(true));
        watch.abort();
        awaitBackground();
        assertThat(closed).isTrue();
    }

    @Test
    void watchdogWithNothingToWatchKeepsNoThread() throws Exception {
        watch.ended();
        Thread timer = threads.timer().submit(Thread::currentThread).get();
        timer.join(30_000);
        assertThat(timer.isAlive()).isFalse();
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
