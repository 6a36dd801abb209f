package io.idempotence.server.servlet;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/** The reader that takes a request body into memory. */
final class RequestBody {
    /** The most that is reserved before the first byte arrives, whatever length the caller declares. */
    private static final int FIRST = 8192;

    private RequestBody() {}

    /**
     * Returns the whole body, or {@code cap + 1} bytes of it if it has more than {@code cap}. Reserves at most twice what has arrived, or 8
     * KiB.
     *
     * @param declared the length that the caller declares, which may be wrong; negative if it declares none
     * @throws RequestNotTakenException if {@code memory} does not have as much
     */
    static byte[] read(InputStream in, long declared, int cap, MemoryBudget.Share memory)
            throws IOException, RequestNotTakenException {
        byte[] bytes = new byte[(int) Math.min(declared < 0 ? FIRST : Math.min(declared, FIRST), cap)];
        memory.require(bytes.length);
        int length = in.readNBytes(bytes, 0, bytes.length);
        while (length == bytes.length) {
            // A body of the declared length ends here, and needs no copy.
            int next = in.read();
            if (next < 0) {
                return bytes;
            }
            long expected = declared > length ? Math.min(declared, cap + 1L) : cap + 1L;
            int larger = (int) Math.min(Math.max(FIRST, 2L * length), expected);
            memory.require(larger - length);
            bytes = Arrays.copyOf(bytes, larger);
            bytes[length++] = (byte) next;
            if (length > cap) {
                return bytes;
            }
            length += in.readNBytes(bytes, length, bytes.length - length);
        }
        return Arrays.copyOf(bytes, length);
    }
}
