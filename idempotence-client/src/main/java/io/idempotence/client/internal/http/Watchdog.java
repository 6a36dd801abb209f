package io.idempotence.client.internal.http;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * A watchdog that ends exchanges whose call is over: its deadline has passed, or its thread was interrupted. The timeouts of HTTP clients
 * do not end an exchange in which the peer reads or writes a byte now and then, or does not read at all.
 */
public final class Watchdog {
    private static final int LONGEST_READ = 8192;
    private static final long LOOK_MILLIS = 50;

    private final CallThreads threads;
    private final Logger log;
    private final Set<Watch> watches = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean looking = new AtomicBoolean();

    /**
     * Creates a watchdog.
     *
     * @param threads include background threads, because closing a connection may block, and so may a read
     * @param log of the client half
     */
    public Watchdog(CallThreads threads, Logger log) {
        this.threads = threads;
        this.log = log;
    }

    /**
     * Watches an exchange until {@link Watch#ended}.
     *
     * @param thread the thread that waits for the exchange, and may be interrupted; null if there is none
     */
    public Watch watch(Deadline deadline, @Nullable Thread thread) {
        Watch watch = new Watch(deadline, thread);
        watches.add(watch);
        try {
            lookSoon();
        } catch (Throwable noThread) {
            watches.remove(watch);
            throw noThread;
        }
        return watch;
    }

    /** Plans the next look at all watches, unless it is planned. A timer for each watch would wake a thread for each request. */
    private void lookSoon() {
        if (!looking.get() && looking.compareAndSet(false, true)) {
            try {
                threads.later(LOOK_MILLIS, this::look);
            } catch (Throwable noThread) {
                looking.set(false);
                throw noThread;
            }
        }
    }

    private void look() {
        // First, so that a watch that is added meanwhile plans the next look itself.
        looking.set(false);
        boolean some = false;
        try {
            for (Watch watch : watches) {
                some = true;
                watch.look();
            }
        } finally {
            if (some) {
                lookSoon();
            }
        }
    }

    /** The watch over one exchange. */
    public final class Watch {
        private final Deadline deadline;
        private final @Nullable Thread thread;
        private final List<Runnable> exits = new CopyOnWriteArrayList<>();
        private final AtomicBoolean closes = new AtomicBoolean();
        private volatile boolean ended;
        private volatile boolean aborted;
        private volatile @Nullable IOException reported;
        private volatile @Nullable SendEvidence evidence;

        private Watch(Deadline deadline, @Nullable Thread thread) {
            this.deadline = deadline;
            this.thread = thread;
        }

        /** Adds an action that ends the exchange. It may run in any thread, and more than once. */
        public void exit(Runnable exit) {
            exits.add(exit);
        }

        /** Adds a response, or its body, that ends the exchange when it is closed. */
        public void exitByClosing(Closeable response) {
            exit(() -> closeQuietly(response));
        }

        /** Called before each request of the exchange is handed to the HTTP client. */
        public void requestStarts() {
            evidence = new SendEvidence();
        }

        /** The evidence of whether the last request was sent. */
        public SendEvidence evidence() {
            SendEvidence last = evidence;
            return last == null ? new SendEvidence() : last;
        }

        /** Whether an exit has run or may still run. If false after {@link #ended}, no exit runs any more, unless {@link #abort} is called. */
        public boolean isAborted() {
            return aborted;
        }

        /** Ends the watch, because the attempt is over. The caller reads the rest of the response. */
        public void ended() {
            ended = true;
            watches.remove(this);
        }

        /** Ends the exchange if its call is over. Called repeatedly, because a connection that is being opened cannot be closed yet. */
        private void look() {
            if ((isTooLate() || isInterrupted()) && closes.compareAndSet(false, true)) {
                aborted = true;
                try {
                    threads.background().execute(() -> {
                        try {
                            exits.forEach(this::leave);
                        } finally {
                            closes.set(false);
                        }
                    });
                } catch (OutOfMemoryError noThread) {
                    // The next look finds this exchange again.
                    closes.set(false);
                }
            }
        }

        /** Runs an exit unless the attempt is over, because its connection may then carry the next call. */
        private void leave(Runnable exit) {
            if (!ended) {
                run(exit);
            }
        }

        /** Ends the exchange, because the caller gave up. */
        public void abort() {
            aborted = true;
            threads.runInBackground(() -> exits.forEach(this::run));
        }

        /** The JDK's connection throws a NullPointerException if the exchange ends by itself at the same moment. */
        private void run(Runnable exit) {
            try {
                exit.run();
            } catch (RuntimeException e) {
                log.debug("An exchange could not be ended", e);
            }
        }

        private boolean isTooLate() {
            return !ended && deadline.isOver();
        }

        private boolean isInterrupted() {
            return !ended && thread != null && thread.isInterrupted();
        }

        /** @throws SocketTimeoutException if the deadline is over */
        public void check() throws SocketTimeoutException {
            if (isTooLate()) {
                SocketTimeoutException late = late();
                reported = late;
                throw late;
            }
        }

        /**
         * Reads in a background thread, which is left behind if the exchange ends here: not every client can end a read, but each has a
         * timeout for it.
         */
        public int read(InputStream in, byte[] buffer, int offset, int length) throws IOException {
            byte[] own = new byte[Math.min(length, LONGEST_READ)];
            CompletableFuture<Integer> reading = new CompletableFuture<>();
            threads.runInBackground(() -> {
                try {
                    reading.complete(in.read(own));
                } catch (Throwable e) {
                    reading.completeExceptionally(e);
                }
            });
            int read = await(reading);
            if (read > 0) {
                System.arraycopy(own, 0, buffer, offset, read);
            }
            return read;
        }

        private int await(CompletableFuture<Integer> reading) throws IOException {
            while (true) {
                try {
                    return reading.get(LOOK_MILLIS, TimeUnit.MILLISECONDS);
                } catch (TimeoutException e) {
                    if (aborted) {
                        throw reason(new IOException("the read was abandoned, because its exchange was ended", e));
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    abort();
                    throw reason(new IOException("the read was abandoned, because its exchange was ended", e));
                } catch (ExecutionException e) {
                    throw e.getCause() instanceof IOException failure ? failure : new IOException(e.getCause());
                }
            }
        }

        /**
         * Closes a response. After {@link #abort} that happens in a background thread, because some clients read the rest first, or wait
         * for a read that still waits.
         */
        public void close(Closeable response) throws IOException {
            if (!aborted) {
                response.close();
                return;
            }
            threads.runInBackground(() -> closeQuietly(response));
        }

        private void closeQuietly(Closeable response) {
            try {
                response.close();
            } catch (IOException | RuntimeException e) {
                log.debug("An abandoned response could not be closed", e);
            }
        }

        /**
         * The failure of an exchange: the deadline or the interrupt that ended it here, if one did, instead of the resulting exception of
         * its HTTP client.
         */
        public IOException reason(IOException failure) {
            if (!aborted || ended || failure == reported) {
                return failure;
            }
            IOException reason = deadline.isOver() ? late() : new InterruptedIOException("the thread was interrupted");
            reason.initCause(failure);
            reported = reason;
            return reason;
        }

        private SocketTimeoutException late() {
            return new SocketTimeoutException("the deadline of the call is over, and its response is not complete");
        }
    }
}
