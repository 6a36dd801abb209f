package io.idempotence.server.servlet;

import java.util.concurrent.atomic.AtomicLong;

/** The memory that all requests of one filter may hold together: request bodies, responses, and replayed results. */
final class MemoryBudget {
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    MemoryBudget(long limit) {
        this.limit = limit;
    }

    long limit() {
        return limit;
    }

    long used() {
        return used.get();
    }

    Share share() {
        return new Share();
    }

    /** The memory that one request holds. Thread-safe. */
    final class Share implements AutoCloseable {
        private long held;
        private boolean closed;

        /** Returns a new share of the same budget, for something else that the request holds. */
        Share another() {
            return share();
        }

        synchronized long held() {
            return held;
        }

        /** Reserves more. Reserves nothing and returns false if the budget does not have it, or if this share is closed. */
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

        /** Reserves more for the request itself, which is refused without it. */
        void require(long bytes) throws RequestNotTakenException {
            if (!reserve(bytes)) {
                throw RequestNotTakenException.noMemory();
            }
        }

        /** Reopens this share and counts bytes again, even beyond the budget. */
        synchronized void resume(long bytes) {
            closed = false;
            held += bytes;
            used.addAndGet(bytes);
        }

        /** Returns everything to the budget. Closing again does nothing. */
        @Override
        public synchronized void close() {
            used.addAndGet(-held);
            held = 0;
            closed = true;
        }
    }
}
