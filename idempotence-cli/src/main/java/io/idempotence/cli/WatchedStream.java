package io.idempotence.cli;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A stream that keeps why a write failed. A {@code PrintStream} only keeps that one did. */
final class WatchedStream extends FilterOutputStream {
    private @Nullable IOException failure;

    WatchedStream(OutputStream out) {
        super(out);
    }

    /** Why output is lost, or null if none is, or if its reader has closed the pipe and wants no more. */
    @Nullable
    String failure() {
        String message = failure == null ? null : Objects.requireNonNullElse(failure.getMessage(), failure.toString());
        return "Broken pipe".equals(message) ? null : message;
    }

    @Override
    public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
        try {
            out.write(bytes, from, length);
        } catch (IOException e) {
            failure = e;
            throw e;
        }
    }
}
