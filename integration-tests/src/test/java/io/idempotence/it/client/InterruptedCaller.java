package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.Callable;

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
        thread.join(20_000);
        assertThat(thread.isAlive()).as("the call has not ended").isFalse();
    }
}
