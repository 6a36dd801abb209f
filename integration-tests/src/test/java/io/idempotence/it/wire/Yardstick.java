package io.idempotence.it.wire;

import static io.idempotence.it.wire.Latches.awaitLatch;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * How late this machine is at this moment: a thread waits in a read, a timer has another thread close its socket, and that is all. What
 * is measured beside it may be as late without a fault of its own.
 */
public final class Yardstick implements AutoCloseable {
    private final long due;
    private final ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    private final Socket waiting = new Socket(listener.getInetAddress(), listener.getLocalPort());
    private final Socket silent = listener.accept();
    private final ScheduledExecutorService threads = Executors.newScheduledThreadPool(3);
    private final CountDownLatch end = new CountDownLatch(1);
    private volatile long endedAt;

    /** @param delay until the read is ended */
    public Yardstick(Duration delay) throws IOException {
        due = System.nanoTime() + delay.toNanos();
        threads.execute(this::read);
        threads.schedule(() -> threads.execute(this::stop), delay.toNanos(), TimeUnit.NANOSECONDS);
    }

    private void read() {
        try {
            InputStream in = waiting.getInputStream();
            in.read();
        } catch (IOException e) {
            // closed
        }
        endedAt = System.nanoTime();
        end.countDown();
    }

    private void stop() {
        try {
            waiting.close();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** By how much the read ended later than it was due. */
    public Duration lateness() {
        awaitLatch(end);
        return Duration.ofNanos(Math.max(0, endedAt - due));
    }

    @Override
    public void close() throws IOException {
        threads.shutdownNow();
        waiting.close();
        silent.close();
        listener.close();
    }
}
