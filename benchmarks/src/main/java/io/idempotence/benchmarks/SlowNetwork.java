package io.idempotence.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/**
 * A longer way to a server on the loopback address: each request arrives later by the round-trip time of a network. Responses pass at
 * once, which is the same to a client that waits for them.
 *
 * <p>One thread reads all connections. Another one writes the requests when they are due. All requests are delayed alike, so that they are
 * due in the order in which they came.
 */
final class SlowNetwork implements AutoCloseable {
    private static final int CALIBRATIONS = 200;
    private static final long CALIBRATION_NANOS = 200_000;
    private static final int BUFFER = 64 * 1024;

    private final InetSocketAddress target;
    private final long delayNanos;
    private final Selector selector;
    private final ServerSocketChannel listener;
    private final Queue<Request> requests = new ConcurrentLinkedQueue<>();
    private final Histogram held = new ConcurrentHistogram(3);
    private final Thread reader;
    private final Thread writer;
    private final long parkOvershoot;
    private volatile boolean idle;
    private volatile boolean closed;

    private record Request(SocketChannel to, ByteBuffer bytes, long arrived, long due) {}

    /** @param delay of each request; zero forwards without a second thread */
    static SlowNetwork before(int port, Duration delay) throws IOException {
        SlowNetwork network = new SlowNetwork(port, delay);
        network.reader.start();
        network.writer.start();
        return network;
    }

    private SlowNetwork(int port, Duration delay) throws IOException {
        target = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        delayNanos = delay.toNanos();
        parkOvershoot = delay.isZero() ? 0 : parkOvershoot(Math.min(delayNanos, CALIBRATION_NANOS));
        selector = Selector.open();
        listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 512);
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        String name = "slow-network-" + delay.toNanos() / 1_000 + "us";
        reader = daemon(this::read, name + "-reader");
        writer = daemon(this::writeWhenDue, name + "-writer");
    }

    private static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    /** By how much a thread oversleeps on this machine, at the median. */
    private static long parkOvershoot(long nanos) {
        long[] overshoots = new long[CALIBRATIONS];
        for (int i = 0; i < CALIBRATIONS; i++) {
            long before = System.nanoTime();
            LockSupport.parkNanos(nanos);
            overshoots[i] = System.nanoTime() - before - nanos;
        }
        Arrays.sort(overshoots);
        return Math.max(0, overshoots[CALIBRATIONS / 2]);
    }

    int port() {
        return listener.socket().getLocalPort();
    }

    /** For how long it really held requests so far, in microseconds. */
    double heldMicros(double percentile) {
        return held.getValueAtPercentile(percentile) / 1e3;
    }

    private void read() {
        try {
            ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER);
            while (!closed) {
                selector.select();
                for (SelectionKey key : selector.selectedKeys()) {
                    if (key.isValid() && key.isAcceptable()) {
                        accept();
                    } else if (key.isValid() && key.isReadable()) {
                        pass((Way) key.attachment(), buffer);
                    }
                }
                selector.selectedKeys().clear();
            }
            for (SelectionKey key : selector.keys()) {
                key.channel().close();
            }
            selector.close();
        } catch (IOException e) {
            throw new UncheckedIOException("the slow network broke", e);
        }
    }

    /** What is read from one channel goes to another. */
    private record Way(SocketChannel from, SocketChannel to, boolean delayed) {}

    private void accept() throws IOException {
        SocketChannel client = listener.accept();
        if (client != null) {
            SocketChannel server = SocketChannel.open(target);
            register(new Way(client, server, delayNanos > 0));
            register(new Way(server, client, false));
        }
    }

    private void register(Way way) throws IOException {
        way.from.setOption(StandardSocketOptions.TCP_NODELAY, true);
        way.from.configureBlocking(false);
        way.from.register(selector, SelectionKey.OP_READ, way);
    }

    private void pass(Way way, ByteBuffer buffer) throws IOException {
        buffer.clear();
        if (readInto(way.from, buffer) < 0) {
            way.from.close();
            way.to.close();
            return;
        }
        buffer.flip();
        if (!way.delayed) {
            write(way.to, buffer);
            return;
        }
        long now = System.nanoTime();
        ByteBuffer copy = ByteBuffer.allocate(buffer.remaining()).put(buffer).flip();
        requests.add(new Request(way.to, copy, now, now + delayNanos));
        if (idle) {
            LockSupport.unpark(writer);
        }
    }

    private static int readInto(SocketChannel from, ByteBuffer buffer) {
        try {
            return from.read(buffer);
        } catch (IOException e) {
            // The other end reset the connection, which ends it like any other end.
            return -1;
        }
    }

    private void writeWhenDue() {
        try {
            while (!closed) {
                Request next = requests.peek();
                if (next == null) {
                    awaitRequest();
                    continue;
                }
                long wait = next.due - System.nanoTime();
                // A thread that sleeps for less than its overshoot would be later than one that does not sleep.
                if (wait > parkOvershoot / 2) {
                    LockSupport.parkNanos(this, Math.max(1, wait - parkOvershoot));
                } else {
                    requests.remove();
                    write(next.to, next.bytes);
                    held.recordValue(System.nanoTime() - next.arrived);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException("the slow network broke", e);
        }
    }

    private void awaitRequest() {
        idle = true;
        if (requests.isEmpty() && !closed) {
            LockSupport.park(this);
        }
        idle = false;
    }

    private static void write(SocketChannel to, ByteBuffer bytes) throws IOException {
        try {
            while (bytes.hasRemaining()) {
                if (to.write(bytes) == 0) {
                    Thread.onSpinWait();
                }
            }
        } catch (ClosedChannelException e) {
            // The side that closed it does not wait for these bytes.
            bytes.clear();
        }
    }

    /** Ends both threads; the reader closes the connections. */
    @Override
    public void close() {
        closed = true;
        selector.wakeup();
        LockSupport.unpark(writer);
    }
}
