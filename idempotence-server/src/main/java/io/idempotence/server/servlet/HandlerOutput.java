package io.idempotence.server.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.Writer;
import java.util.Objects;

/** The destination of what a handler writes. */
interface HandlerOutput {
    /** A write or flush of the response. */
    interface Action {
        void run() throws IOException;
    }

    /** The response to which bytes and characters leave. */
    HttpServletResponse target();

    /**
     * Keeps what the handler writes, and lets it leave if bytes leave at once.
     *
     * @param length how many bytes or characters
     * @param keep adds them to the held body
     * @param leave writes them to the {@link #target}
     */
    void write(int length, Runnable keep, Action leave);

    void flush();

    void close();

    /** The stream through which a handler writes its response. It is always ready. */
    final class HeldStream extends ServletOutputStream {
        private final HandlerOutput output;
        private final BodyBuffer body;
        private final Dispatches dispatches;
        private boolean hasListener;

        /** @param dispatches calls the listener */
        HeldStream(HandlerOutput output, BodyBuffer body, Dispatches dispatches) {
            this.output = output;
            this.body = body;
            this.dispatches = dispatches;
        }

        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            Objects.requireNonNull(listener, "listener");
            if (hasListener) {
                throw new IllegalStateException(
                        "setWriteListener() was called for this response, so another listener is not accepted; set only one");
            }
            dispatches.requireAsync();
            hasListener = true;
            dispatches.callListener(listener::onWritePossible, listener::onError);
        }

        @Override
        public void write(int b) {
            output.write(
                    1,
                    () -> body.write(b),
                    () -> output.target().getOutputStream().write(b));
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

    /** The writer through which a handler writes its response. */
    final class HeldWriter extends Writer {
        private final HandlerOutput output;
        private final BodyBuffer body;

        HeldWriter(HandlerOutput output, BodyBuffer body) {
            this.output = output;
            this.body = body;
        }

        @Override
        public void write(String text, int offset, int length) {
            output.write(
                    length,
                    () -> body.write(text, offset, length),
                    () -> output.target().getWriter().write(text, offset, length));
        }

        @Override
        public void write(char[] buffer, int offset, int length) {
            output.write(
                    length,
                    () -> body.write(buffer, offset, length),
                    () -> output.target().getWriter().write(buffer, offset, length));
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
}
