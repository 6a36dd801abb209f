package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** Where the bytes and characters of a handler go. */
interface HandlerOutput {
    /** Something that the handler does to the response. */
    interface Action {
        void run() throws IOException;
    }

    /** The response to which they leave. */
    HttpServletResponse target();

    /**
     * Keeps what the handler writes, and lets it leave if bytes leave at once.
     *
     * @param length how many bytes or characters
     */
    void write(int length, Runnable keep, Action leave);

    void flush();

    void close();
}
