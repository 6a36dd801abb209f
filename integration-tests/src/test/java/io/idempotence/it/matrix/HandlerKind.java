package io.idempotence.it.matrix;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.function.Consumer;

/** A way to respond. Its name is the last segment of the path of requests that get it. */
enum HandlerKind {
    // ---- synchronous
    SYNC_STREAM(Column.SYNC, "writes to the stream", run -> write(run.response)),
    SYNC_WRITER(Column.SYNC, "writes to the writer", run -> {
        head(run.response);
        run.response.getWriter().print(Paid.BODY);
    }),
    SYNC_FLUSHED(Column.SYNC, "flushes between two writes, closes the stream", run -> {
        head(run.response);
        ServletOutputStream out = run.response.getOutputStream();
        out.write(Paid.BYTES, 0, 100);
        run.response.flushBuffer();
        out.write(Paid.BYTES, 100, Paid.BYTES.length - 100);
        out.close();
    }),
    SYNC_LENGTH(Column.SYNC, "sets `Content-Length`", run -> {
        run.response.setContentLength(Paid.BYTES.length);
        write(run.response);
    }),
    SYNC_EMPTY(Column.SYNC, "responds 204", run -> run.response.setStatus(204)),

    // ---- asynchronous, ended by complete()
    COMPLETE_LATER(
            Column.COMPLETE,
            "`startAsync()`, later writes to its own response",
            run -> complete(run, false, false, true)),
    COMPLETE_LATER_ARGS(
            Column.COMPLETE,
            "`startAsync(request, response)`, later writes to its own response",
            run -> complete(run, true, false, true)),
    COMPLETE_LATER_CONTEXT(
            Column.COMPLETE,
            "`startAsync()`, later writes to `AsyncContext.getResponse()`",
            run -> complete(run, false, true, true)),
    COMPLETE_LATER_ARGS_CONTEXT(
            Column.COMPLETE,
            "`startAsync(request, response)`, later writes to `AsyncContext.getResponse()`",
            run -> complete(run, true, true, true)),
    COMPLETE_INLINE(
            Column.COMPLETE,
            "`startAsync()`, at once writes to its own response",
            run -> complete(run, false, false, false)),
    COMPLETE_INLINE_ARGS(
            Column.COMPLETE,
            "`startAsync(request, response)`, at once writes to its own response",
            run -> complete(run, true, false, false)),
    COMPLETE_INLINE_CONTEXT(
            Column.COMPLETE,
            "`startAsync()`, at once writes to `AsyncContext.getResponse()`",
            run -> complete(run, false, true, false)),
    COMPLETE_INLINE_ARGS_CONTEXT(
            Column.COMPLETE,
            "`startAsync(request, response)`, at once writes to `AsyncContext.getResponse()`",
            run -> complete(run, true, true, false)),

    // ---- asynchronous, ended by dispatch()
    DISPATCH_LATER(Column.DISPATCH, "`startAsync()`, later `dispatch()`", run -> dispatch(run, false, true)),
    DISPATCH_LATER_ARGS(
            Column.DISPATCH, "`startAsync(request, response)`, later `dispatch()`", run -> dispatch(run, true, true)),
    DISPATCH_INLINE(Column.DISPATCH, "`startAsync()`, at once `dispatch()`", run -> dispatch(run, false, false)),
    DISPATCH_INLINE_ARGS(
            Column.DISPATCH,
            "`startAsync(request, response)`, at once `dispatch()`",
            run -> dispatch(run, true, false)),
    DISPATCH_PATH(Column.DISPATCH, "`startAsync(request, response)`, later `dispatch(path)`", run -> {
        if (run.isRedispatch()) {
            write(run.response);
        } else {
            AsyncContext async = run.startAsync(true);
            String there = run.request.getRequestURI();
            run.afterDispatch(() -> async.dispatch(there + "?again"));
        }
    }),

    // ---- non-blocking
    NONBLOCKING(
            Column.NONBLOCKING,
            "`startAsync()`, `WriteListener` on its own response",
            run -> writeNonBlocking(run.startAsync(false), run.response)),
    NONBLOCKING_ARGS(
            Column.NONBLOCKING,
            "`startAsync(request, response)`, `WriteListener` on its own response",
            run -> writeNonBlocking(run.startAsync(true), run.response)),
    NONBLOCKING_CONTEXT(Column.NONBLOCKING, "`startAsync()`, `WriteListener` on `AsyncContext.getResponse()`", run -> {
        AsyncContext async = run.startAsync(false);
        writeNonBlocking(async, (HttpServletResponse) async.getResponse());
    }),

    // ---- errors
    ERROR_PAGE(
            Column.ERROR,
            "`sendError`, page of the application",
            run -> run.response.sendError(422, "no such account")),
    ERROR_PAGE_OF_CONTAINER(
            Column.ERROR, "`sendError`, page of the container", run -> run.response.sendError(422, "no such account")),
    ERROR_PAGE_OF_EXCEPTION(Column.ERROR, "exception, page of the application", run -> {
        throw new ServletException("database down");
    }),
    ERROR_PAGE_ASYNC(Column.ERROR, "`startAsync(request, response)`, `sendError`, `complete()`", run -> {
        AsyncContext async = run.startAsync(true);
        run.response.sendError(422, "no such account");
        async.complete();
    }),
    ERROR_PAGE_DISPATCHED(Column.ERROR, "`startAsync(request, response)`, later `dispatch()`, `sendError`", run -> {
        if (run.isRedispatch()) {
            run.response.sendError(422, "no such account");
        } else {
            AsyncContext async = run.startAsync(true);
            run.afterDispatch(async::dispatch);
        }
    }),

    // ---- redirects
    REDIRECT(Column.REDIRECT, "`sendRedirect`", run -> run.response.sendRedirect("/payments/1")),
    REDIRECT_303(Column.REDIRECT, "status 303 and `Location`", run -> {
        run.response.setStatus(303);
        run.response.setHeader("Location", "/payments/1");
    }),
    LOCATION(Column.REDIRECT, "`Location` with `encodeURL`", run -> {
        run.response.setHeader("Location", run.response.encodeURL("/payments/1"));
        write(run.response);
    }),
    REDIRECT_WITH_SESSION(Column.REDIRECT, "`sendRedirect` with `encodeRedirectURL` and a new session", run -> {
        run.request.getSession();
        run.response.sendRedirect(run.response.encodeRedirectURL("/payments/1"));
    }),
    LOCATION_WITH_SESSION(Column.REDIRECT, "`Location` with `encodeURL` and a new session", run -> {
        run.request.getSession();
        run.response.setHeader("Location", run.response.encodeURL("/payments/1"));
        write(run.response);
    }),
    REDIRECT_ASYNC(Column.REDIRECT, "`startAsync(request, response)`, later `sendRedirect`", run -> {
        AsyncContext async = run.startAsync(true);
        run.afterDispatch(() -> {
            run.response.sendRedirect("/payments/1");
            async.complete();
        });
    });

    /** Makes a handler use its session. */
    static final String SESSION_HEADER = "X-Session";

    static final String HANDLER_HEADER = "X-Handler";

    /** Long enough for a container to compress it. */
    private static final class Paid {
        static final String BODY =
                "{\"paid\":\"42 \u20ac\",\"text\":\"" + "one payment, one response; ".repeat(120) + "\"}";
        static final byte[] BYTES = BODY.getBytes(StandardCharsets.UTF_8);
    }

    /** A column of the table. */
    enum Column {
        SYNC("synchronous"),
        COMPLETE("`complete()`"),
        DISPATCH("`dispatch()`"),
        NONBLOCKING("non-blocking"),
        ERROR("error page"),
        REDIRECT("redirect");

        private final String title;

        Column(String title) {
            this.title = title;
        }

        String title() {
            return title;
        }
    }

    @FunctionalInterface
    private interface Responding {
        void respond(Run run) throws IOException, ServletException;
    }

    private final Column column;
    private final String title;
    private final Responding responding;

    HandlerKind(Column column, String title, Responding responding) {
        this.column = column;
        this.title = title;
        this.responding = responding;
    }

    Column column() {
        return column;
    }

    String title() {
        return title;
    }

    String path() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Whether the container's error page is asked for, not one of the application. */
    boolean wantsContainersPage() {
        return this == ERROR_PAGE_OF_CONTAINER;
    }

    /** A synchronous handler that gives the same response and creates no session. */
    HandlerKind plain() {
        return switch (this) {
            case ERROR_PAGE_ASYNC, ERROR_PAGE_DISPATCHED -> ERROR_PAGE;
            case REDIRECT_ASYNC, REDIRECT_WITH_SESSION -> REDIRECT;
            case LOCATION_WITH_SESSION -> LOCATION;
            default ->
                switch (column) {
                    case COMPLETE, DISPATCH, NONBLOCKING -> SYNC_STREAM;
                    default -> this;
                };
        };
    }

    void respond(Run run) throws IOException, ServletException {
        if (run.request.getHeader(SESSION_HEADER) != null) {
            run.request.getSession().setAttribute("visited", "yes");
        }
        responding.respond(run);
    }

    /** One dispatch of a request to its handler. */
    record Run(HttpServletRequest request, HttpServletResponse response, Consumer<Task> later) {
        private static final String STARTED = Run.class.getName();

        boolean isRedispatch() {
            return request.getAttribute(STARTED) != null;
        }

        AsyncContext startAsync(boolean args) {
            request.setAttribute(STARTED, "yes");
            AsyncContext async = args ? request.startAsync(request, response) : request.startAsync();
            async.setTimeout(60_000);
            return async;
        }

        /** Runs a task in another thread when every filter has returned from this dispatch. */
        void afterDispatch(Task task) {
            later.accept(task);
        }
    }

    @FunctionalInterface
    interface Task {
        void run() throws IOException;
    }

    private static void head(HttpServletResponse response) {
        response.setStatus(201);
        response.setContentType("application/json");
        response.setCharacterEncoding("UTF-8");
        response.setHeader(HANDLER_HEADER, "yes");
    }

    private static void write(HttpServletResponse response) throws IOException {
        head(response);
        response.getOutputStream().write(Paid.BYTES);
    }

    private static void complete(Run run, boolean args, boolean context, boolean later) throws IOException {
        AsyncContext async = run.startAsync(args);
        HttpServletResponse response = context ? (HttpServletResponse) async.getResponse() : run.response;
        Task task = () -> {
            write(response);
            response.getOutputStream().close();
            async.complete();
        };
        if (later) {
            run.afterDispatch(task);
        } else {
            task.run();
        }
    }

    private static void dispatch(Run run, boolean args, boolean later) throws IOException {
        if (run.isRedispatch()) {
            write(run.response);
            return;
        }
        AsyncContext async = run.startAsync(args);
        if (later) {
            run.afterDispatch(async::dispatch);
        } else {
            async.dispatch();
        }
    }

    private static void writeNonBlocking(AsyncContext async, HttpServletResponse response) throws IOException {
        head(response);
        ServletOutputStream out = response.getOutputStream();
        out.setWriteListener(new WriteListener() {
            private int written;

            @Override
            public void onWritePossible() throws IOException {
                while (written < Paid.BYTES.length && out.isReady()) {
                    int length = Math.min(1000, Paid.BYTES.length - written);
                    out.write(Paid.BYTES, written, length);
                    written += length;
                }
                if (written == Paid.BYTES.length && out.isReady()) {
                    written++;
                    async.complete();
                }
            }

            @Override
            public void onError(Throwable failure) {
                throw new UncheckedIOException(new IOException(failure));
            }
        });
    }
}
