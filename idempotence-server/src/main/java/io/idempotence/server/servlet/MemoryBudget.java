package io.idempotence.server.servlet;

import java.util.concurrent.atomic.AtomicLong;

/** The memory that all requests of one filter may hold together: request bodies, responses, and results that are replayed. */
final class MemoryBudget {
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    MemoryBudget(long limit) {
        this.limit = limit;
    }

    long used() {
        return used.get();
    }

    Share share() {
        return new Share();
    }

    /** What one request holds. Thread-safe. */
    final class Share implements AutoCloseable {
        private long held;
        private boolean closed;

        /** A share of the same budget for something else that the request holds. */
        Share another() {
            return share();
        }

        synchronized long held() {
            return held;
        }

        /** Reserves more, or nothing if the budget does not have it or this share is closed. */
        synchronized boolean reserve(long bytes) {
            if (closed) {
                return false;
            }
            if (used.addAndGet(bytes) > limit) {
                used.addAndGet(-bytes);
                return false;
            }
            held += bytes;
            return true;
        }

        /** Reserves more for the request itself. */
        void require(long bytes) throws RequestNotTakenException {
            if (!reserve(bytes)) {
                throw RequestNotTakenException.noMemory();
            }
        }

        /** Counts what is held again after it was given back, even if the budget does not have as much. */
        synchronized void resume(long bytes) {
            closed = false;
            held += bytes;
            used.addAndGet(bytes);
        }

        /** Gives everything back. Closing again does nothing. */
        @Override
        public synchronized void close() {
            used.addAndGet(-held);
            held = 0;
            closed = true;
        }
    }
}
