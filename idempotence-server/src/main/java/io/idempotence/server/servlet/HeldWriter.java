package io.idempotence.server.servlet;

import java.io.Writer;

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
