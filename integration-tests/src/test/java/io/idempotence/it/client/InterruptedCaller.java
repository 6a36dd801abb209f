package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;

/** A call in a thread of its own, which a test interrupts. */
final class InterruptedCaller {
    private final Thread thread;
    private volatile Exception thrown;
    private volatile boolean flag;

    InterruptedCaller(Callable<?> call) {
        thread = new Thread(() -> {
            try {
                call.call();
            } catch (Exception e) {
                thrown = e;
            }
            flag = Thread.currentThread().isInterrupted();
        });
        thread.start();
    }

    /** Whether it waits for some time. */
    boolean waits() {
        return thread.getState() == Thread.State.TIMED_WAITING;
    }

    /** Waits until it is at one place for a while. */
    void awaitStall() {
        AtomicReference<List<StackTraceElement>> before = new AtomicReference<>(List.of());
        await().pollInterval(Duration.ofMillis(50)).until(() -> {
            List<StackTraceElement> now = List.of(thread.getStackTrace());
            return now.equals(before.getAndSet(now));
        });
        assertThat(thread.isAlive()).as("the call still runs").isTrue();
    }

    void interrupt() {
        thread.interrupt();
    }

    /** What the call threw, or null, once it has ended. */
    Exception thrown() throws InterruptedException {
        awaitEnd();
        return thrown;
    }

    /** Whether the thread was still interrupted after the call. */
    boolean keptItsFlag() throws InterruptedException {
        awaitEnd();
        return flag;
    }

    private void awaitEnd() throws InterruptedException {
        thread.join(60_000);
        assertThat(thread.isAlive()).as("the call has not ended").isFalse();
    }
}
