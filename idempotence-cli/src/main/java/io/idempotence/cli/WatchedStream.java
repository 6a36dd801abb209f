package io.idempotence.cli;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
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
        if (failure == null) {
            return null;
        }
        String reason = Objects.requireNonNullElse(failure.getMessage(), failure.toString());
        return reason.equals(textOfClosedPipe()) ? null : reason;
    }

    /** The text of a write that fails because the pipe's reader has closed it, in the language of the system. */
    private static @Nullable String textOfClosedPipe() {
        try {
            Pipe pipe = Pipe.open();
            pipe.source().close();
            try (Pipe.SinkChannel sink = pipe.sink()) {
                sink.write(ByteBuffer.wrap(new byte[1]));
            }
            return null;
        } catch (IOException e) {
            return e.getMessage();
        }
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
            if (failure == null) {
                failure = e;
            }
            throw e;
        }
    }
}
