package io.idempotence.server.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import java.io.IOException;
import java.util.concurrent.Executor;

/** The stream through which a handler writes its response. It is always ready. */
final class HeldStream extends ServletOutputStream {
    private final HandlerOutput output;
    private final BodyBuffer body;
    private final Executor afterDispatch;

    /** @param afterDispatch runs the listener, which a container calls when the dispatch has ended */
    HeldStream(HandlerOutput output, BodyBuffer body, Executor afterDispatch) {
        this.output = output;
        this.body = body;
        this.afterDispatch = afterDispatch;
    }

    @Override
    public boolean isReady() {
        return true;
    }

    @Override
    public void setWriteListener(WriteListener listener) {
        afterDispatch.execute(() -> {
            try {
                listener.onWritePossible();
            } catch (IOException | RuntimeException e) {
                listener.onError(e);
            }
        });
    }

    @Override
    public void write(int b) {
        output.write(
                1, () -> body.write(b), () -> output.target().getOutputStream().write(b));
    }

    @Override
    public void write(byte[] buffer, int offset, int length) {
        output.write(
                length,
                () -> body.write(buffer, offset, length),
                () -> output.target().getOutputStream().write(buffer, offset, length));
    }

    @Override
    public void flush() {
        output.flush();
    }

    @Override
    public void close() {
        output.close();
    }
}
