package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The threads of a scheduler after a shortage of threads. */
class SchedulerTest {
    private final AtomicInteger wanted = new AtomicInteger();
    private final ThreadLimit limit = new ThreadLimit();
    private final Scheduler scheduler = new Scheduler(limit.apply("idempotence-test"), 4);
    private final AtomicInteger runs = new AtomicInteger();

    @AfterEach
    void close() {
        scheduler.close();
    }

    private void countThreads(boolean reached) {
        limit.reachedFor(name -> {
            wanted.incrementAndGet();
            return reached;
        });
    }

    @Test
    @DisplayName("a task that found no thread runs when one can be started")
    void aTaskThatFoundNoThreadRunsWhenOneCanBeStarted() {
        countThreads(true);
        scheduler.queue(Duration.ZERO, runs::incrementAndGet);
        scheduler.startMissingThread();
        assertThat(wanted).hasValue(2);
        countThreads(false);
        scheduler.startMissingThread();
        await().until(() -> runs.get() == 1);
        scheduler.startMissingThread();
        assertThat(wanted).hasValue(3);
    }

    @Test
    @DisplayName("no thread is started for a task that another thread has run")
    void noThreadIsStartedForATaskThatAnotherThreadHasRun() {
        countThreads(true);
        scheduler.queue(Duration.ZERO, runs::incrementAndGet);
        countThreads(false);
        CountDownLatch ran = new CountDownLatch(1);
        scheduler.queue(Duration.ZERO, ran::countDown);
        await().until(() -> runs.get() == 1 && ran.getCount() == 0);
        assertThat(wanted).hasValue(2);
        scheduler.startMissingThread();
        assertThat(wanted).hasValue(2);
    }
}
