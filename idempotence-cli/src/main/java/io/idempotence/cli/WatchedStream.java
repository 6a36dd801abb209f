package io.idempotence.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A stream that keeps why a write failed. A {@code PrintStream} only keeps that one did. */
final class WatchedStream extends FilterOutputStream {
    private static final int KIND = 0170000;
    private static final int PIPE = 0010000;
    private static final int SOCKET = 0140000;

    private final boolean hasReader;
    private @Nullable IOException failure;

    /** @param hasReader whether the other end is a process, so that a write fails only if that wants no more */
    WatchedStream(OutputStream out, boolean hasReader) {
        super(out);
        this.hasReader = hasReader;
    }

    /** The standard output of this process. */
    static WatchedStream standardOutput() {
        return new WatchedStream(new FileOutputStream(FileDescriptor.out), isPipe(Path.of("/dev/fd/1")));
    }

    /** Whether a file is a pipe or a socket. The text of a failed write depends on the language of the system. */
    static boolean isPipe(Path file) {
        try {
            int kind = (Integer) Files.getAttribute(file, "unix:mode") & KIND;
            return kind == PIPE || kind == SOCKET;
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException notOnThisSystem) {
            return false;
        }
    }

    /** Why output is lost, or null if none is, or if its reader has closed the pipe and wants no more. */
    @Nullable
    String failure() {
        return failure == null || hasReader
                ? null
                : Objects.requireNonNullElse(failure.getMessage(), failure.toString());
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
