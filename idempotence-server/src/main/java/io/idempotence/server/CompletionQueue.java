package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * The completions that follow their responses. Thread-safe.
 *
 * <p>A writer is a thread. It sends all waiting completions together, then those that came in the meantime, until none waits. So the load
 * determines how many completions share a round trip. There is one writer for every {@link IdempotenceStorage#completionsPerRoundTrip()}
 * unwritten completions, so that a round trip that hangs delays no more than that.
 */
final class CompletionQueue {
    /** How many completions may be unwritten. Beyond that the storage is slow, and callers wait for it. */
    static final int MAX_UNWRITTEN = 64;

    /** A larger batch would save nothing, and could exceed a timeout for replies. One result may be larger. */
    private static final int MAX_BYTES = 32 * 1024;

    private final IdempotenceStorage storage;
    private final StorageGuard guard;
    private final BackgroundWrites threads;
    private final int maxWriters;
    private final Queue<Entry> queue = new ConcurrentLinkedQueue<>();
    private final AtomicInteger unwritten = new AtomicInteger();
    private final AtomicInteger writers = new AtomicInteger();
    private volatile boolean closed;

    /** A completion in the queue. Exactly one of {@link #written}, {@link #writeAlone} and {@link #failed} is called, once. */
    interface Entry {
        IdempotenceId id();

        CompletionRequest request();

        /** Called with what the storage returned for it. */
        void written(WriteResult result);

        /** Called to write it now, without others. */
        void writeAlone();

        /** Called if the storage failed. It may be recorded or not. */
        void failed(Throwable cause);
    }

    /** @param threads the threads of the writers; when it is closed, it also writes what is left */
    CompletionQueue(IdempotenceStorage storage, StorageGuard guard, BackgroundWrites threads, int maxWriters) {
        this.storage = storage;
        this.guard = guard;
        this.threads = threads;
        this.maxWriters = maxWriters;
    }

    /**
     * Writes a completion soon, or at once if no thread can be started. Returns false if too many are unwritten, or if this is closed.
     */
    boolean offer(Entry entry) {
        if (closed) {
            return false;
        }
        if (unwritten.incrementAndGet() > MAX_UNWRITTEN) {
            unwritten.decrementAndGet();
            return false;
        }
        queue.add(entry);
        if (closed) {
            writeLeft();
            return true;
        }
        if (needsWriter()) {
            startWriter();
        }
        return true;
    }

    /** Returns whether one more writer is needed, and counts it. */
    private boolean needsWriter() {
        int running = writers.get();
        while (running < maxWriters && running * storage.completionsPerRoundTrip() < unwritten.get()) {
            if (writers.compareAndSet(running, running + 1)) {
                return true;
            }
            running = writers.get();
        }
        return false;
    }

    private void startWriter() {
        try {
            threads.execute(this::writeAll);
        } catch (OutOfMemoryError noThread) {
            writers.decrementAndGet();
            writeWhatWaits();
        }
    }

    /** Writes what waits now, in the calling thread. A completion that is added meanwhile finds no writer and starts one itself. */
    private void writeWhatWaits() {
        int left = unwritten.get();
        int written;
        do {
            written = writeNext();
            left -= written;
        } while (written > 0 && left > 0);
    }

    /** Writes until nothing waits. */
    private void writeAll() {
        do {
            try {
                while (writeNext() > 0) {
                    // until nothing waits
                }
            } finally {
                writers.decrementAndGet();
            }
            // A thread that added a completion after the last look may have counted on this writer.
        } while (!queue.isEmpty() && needsWriter());
    }

    /** Writes the next batch, and returns how many completions it had. */
    private int writeNext() {
        List<Entry> batch = next();
        try {
            write(batch);
        } finally {
            unwritten.addAndGet(-batch.size());
        }
        return batch.size();
    }

    private List<Entry> next() {
        int most = Math.min(storage.completionsPerRoundTrip(), MAX_UNWRITTEN);
        // Of its final size, so that no polled entry is lost for lack of memory.
        List<Entry> batch = new ArrayList<>(most);
        int bytes = 0;
        while (batch.size() < most && bytes < MAX_BYTES) {
            Entry entry = queue.poll();
            if (entry == null) {
                break;
            }
            batch.add(entry);
            bytes += entry.request().result().length;
        }
        return batch;
    }

    private void write(List<Entry> batch) {
        if (batch.isEmpty()) {
            return;
        }
        if (batch.size() == 1) {
            Scheduler.runLogged(batch.get(0)::writeAlone);
            return;
        }
        List<Supplier<WriteResult>> outcomes;
        try {
            List<CompletionRequest> requests =
                    batch.stream().map(Entry::request).toList();
            outcomes = guard.callUnlimited(() -> storage.completeAll(requests));
            if (outcomes.size() != batch.size()) {
                throw new IllegalStateException("the storage returned " + outcomes.size() + " outcomes for "
                        + batch.size() + " completions; completeAll must return one for each");
            }
        } catch (Throwable e) {
            batch.forEach(entry -> Scheduler.runLogged(() -> entry.failed(e)));
            return;
        }
        for (int i = 0; i < batch.size(); i++) {
            Entry entry = batch.get(i);
            Supplier<WriteResult> outcome = outcomes.get(i);
            Scheduler.runLogged(() -> end(entry, outcome));
        }
    }

    private static void end(Entry entry, Supplier<WriteResult> outcome) {
        WriteResult result;
        try {
            result = outcome.get();
        } catch (RuntimeException e) {
            // Only this one failed, perhaps because the server has lost a script.
            entry.writeAlone();
            return;
        } catch (Error e) {
            entry.failed(e);
            return;
        }
        entry.written(result);
    }

    /** Accepts no more completions. Those that wait are written when the threads' owner closes, each alone. */
    void beginClose() {
        closed = true;
        writeLeft();
    }

    private void writeLeft() {
        for (Entry entry = queue.poll(); entry != null; entry = queue.poll()) {
            threads.add(entry.id(), Duration.ZERO, entry::writeAlone);
        }
    }
}
