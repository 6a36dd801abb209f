package io.idempotence.server;

import io.idempotence.server.storage.CorruptRecordException;
import java.util.Arrays;

/** The format of stored results. The first byte is the kind of the rest. Kind 1 is an HTTP response, which only the filter reads. */
final class StoredResult {
    static final byte UNAVAILABLE = 0;
    static final byte VALUE = 2;
    static final byte NULL = 3;

    private StoredResult() {}

    static byte[] nothing() {
        return new byte[] {NULL};
    }

    static byte[] value(byte[] value) {
        byte[] result = new byte[value.length + 1];
        result[0] = VALUE;
        System.arraycopy(value, 0, result, 1, value.length);
        return result;
    }

    static byte kind(byte[] result) {
        if (result.length == 0) {
            throw new CorruptRecordException("a stored result is empty");
        }
        return result[0];
    }

    static byte[] valueOf(byte[] result) {
        if (kind(result) != VALUE) {
            throw new CorruptRecordException("a stored result is of kind " + result[0] + ", not a value");
        }
        return Arrays.copyOfRange(result, 1, result.length);
    }
}
