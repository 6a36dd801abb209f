package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.client.internal.http.Watchdog.Watch;
import java.io.ByteArrayInputStream;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

class WatchdogTest {
    private static final Logger LOG = LoggerFactory.getLogger(WatchdogTest.class);

    private final CallThreads threads = new CallThreads();
    private final Watch watch = new Watchdog(threads, LOG).watch(Deadline.in(Duration.ZERO), null);
    private final CountDownLatch closing = new CountDownLatch(1);
    private final CountDownLatch goesOn = new CountDownLatch(1);
    private final AtomicBoolean closed = new AtomicBoolean();
    private final AtomicReference<String> missing = new AtomicReference<>("");
    private final CountDownLatch refused = new CountDownLatch(1);

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
        assertThat(closing.await(60, TimeUnit.SECONDS)).isTrue();
        watch.ended();
        assertThat(watch.isAborted()).isTrue();
        goesOn.countDown();
        awaitBackground();
        assertThat(closed).isFalse();
    }

    /** A call that is not aborted returns a response, and no exit may close it afterwards. */
    @Test
    void exchangeThatEndedBeforeTheDeadlineIsNotAbortedAndNoExitOfItRuns() throws Exception {
        Watchdog watchdog = new Watchdog(threads, LOG);
        Deadline deadline = Deadline.in(Duration.ofSeconds(2));
        Watch early = watchdog.watch(deadline, null);
        early.exit(() -> closed.set(true));
        watchdog.watch(deadline, null).exit(closing::countDown);
        early.ended();
        assertThat(early.isAborted()).isFalse();
        assertThat(closing.await(60, TimeUnit.SECONDS)).isTrue();
        awaitBackground();
        assertThat(early.isAborted()).isFalse();
        assertThat(closed).isFalse();
    }

    @Test
    void everyRequestIsWatchedWhileOthersBeginAndEnd() throws Exception {
        Watchdog watchdog = new Watchdog(threads, LOG);
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
        assertThat(all.await(60, TimeUnit.SECONDS)).isTrue();
    }

    /** Threads of which those of one name cannot be started while {@link #missing} has a value. */
    private CallThreads without(String name) {
        missing.set(name);
        return new CallThreads(of -> task -> {
            if (of.equals(missing.get())) {
                refused.countDown();
                throw new OutOfMemoryError("unable to create native thread");
            }
            Thread thread = new Thread(task, of);
            thread.setDaemon(true);
            return thread;
        });
    }

    @Test
    void exchangeThatNoThreadCouldCloseIsClosedWhenOneCan() throws Exception {
        CountDownLatch ended = new CountDownLatch(1);
        Watch late = new Watchdog(without("idempotence-background"), LOG).watch(Deadline.in(Duration.ZERO), null);
        late.exit(ended::countDown);
        assertThat(refused.await(60, TimeUnit.SECONDS)).isTrue();
        missing.set("");
        assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
        late.ended();
    }

    @Test
    void exchangeIsReadAbortedAndClosedWithoutABackgroundThread() throws Exception {
        Watch alone =
                new Watchdog(without("idempotence-background"), LOG).watch(Deadline.in(Duration.ofMinutes(1)), null);
        byte[] read = new byte[4];
        assertThat(alone.read(new ByteArrayInputStream(new byte[] {1, 2}), read, 1, 3))
                .isEqualTo(2);
        assertThat(read).containsExactly(0, 1, 2, 0);
        AtomicBoolean aborted = new AtomicBoolean();
        alone.exit(() -> aborted.set(true));
        alone.abort();
        assertThat(aborted).isTrue();
        alone.close(() -> closed.set(true));
        assertThat(closed).isTrue();
    }

    @Test
    void requestsThatNothingCanWatchLeaveNothingBehind() throws Exception {
        CallThreads few = without("idempotence-timer");
        Watchdog watchdog = new Watchdog(few, LOG);
        for (int i = 0; i < 3; i++) {
            assertThatThrownBy(() -> watchdog.watch(Deadline.in(Duration.ofMinutes(1)), null))
                    .isInstanceOf(OutOfMemoryError.class);
        }
        assertThat(((ThreadPoolExecutor) few.timer()).getQueue()).isEmpty();
        missing.set("");
        CountDownLatch ended = new CountDownLatch(1);
        Watch late = watchdog.watch(Deadline.in(Duration.ZERO), null);
        late.exit(ended::countDown);
        assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
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
