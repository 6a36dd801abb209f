package io.idempotence.server.servlet;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;

/** The memory that all requests of one filter may hold together: request bodies, responses, and replayed results. */
final class MemoryBudget {
    /** The most that is reserved for a body before its first byte arrives, whatever length the caller declares. */
    private static final int FIRST = 8192;

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

        /**
         * Reads a request body. Returns all of it, or {@code cap + 1} bytes of it if it has more than {@code cap}. Reserves at most
         * twice what has arrived, or 8 KiB.
         *
         * @param declared the length that the caller declares, which may be wrong; negative if it declares none
         * @throws RequestNotTakenException if the budget does not have as much
         */
        byte[] read(InputStream in, long declared, int cap) throws IOException, RequestNotTakenException {
            byte[] bytes = new byte[(int) Math.min(declared < 0 ? FIRST : Math.min(declared, FIRST), cap)];
            require(bytes.length);
            int length = in.readNBytes(bytes, 0, bytes.length);
            while (length == bytes.length) {
                // A body of the declared length ends here, and needs no copy.
                int next = in.read();
                if (next < 0) {
                    return bytes;
                }
                long expected = declared > length ? Math.min(declared, cap + 1L) : cap + 1L;
                int larger = (int) Math.min(Math.max(FIRST, 2L * length), expected);
                require(larger - length);
                bytes = Arrays.copyOf(bytes, larger);
                bytes[length++] = (byte) next;
                if (length > cap) {
                    return bytes;
                }
                length += in.readNBytes(bytes, length, bytes.length - length);
            }
            return Arrays.copyOf(bytes, length);
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
            if (held != 0) {
                used.addAndGet(-held);
                held = 0;
            }
            closed = true;
        }
    }
}
