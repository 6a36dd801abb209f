package io.idempotence.it.container;

import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** A real servlet container on a free loopback port. */
public interface ServletServer extends AutoCloseable {
    int port();

    default URI uri(String path) {
        return URI.create("http://127.0.0.1:" + port() + path);
    }

    @Override
    void close();

    /** Whether this virtual machine runs with Servlet 6.1; otherwise it is 6.0. */
    static boolean isServlet61() {
        return Stream.of(HttpServletResponse.class.getMethods())
                .anyMatch(method -> method.getName().equals("sendRedirect") && method.getParameterCount() == 3);
    }

    /** A function that starts a container with one application. */
    interface Starter {
        /**
         * @param setup adds filters and servlets
         * @param errorPage where {@code sendError} and exceptions lead, or null for the container's own page
         */
        ServletServer start(Consumer<ServletContext> setup, String errorPage);
    }

    /** What a servlet does with every method. */
    @FunctionalInterface
    interface Handler {
        void handle(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException;
    }

    static HttpServlet servlet(Handler handler) {
        return new HttpServlet() {
            private static final long serialVersionUID = 1L;

            @Override
            protected void service(HttpServletRequest request, HttpServletResponse response)
                    throws IOException, ServletException {
                handler.handle(request, response);
            }
        };
    }
}
