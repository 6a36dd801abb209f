package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

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
}
