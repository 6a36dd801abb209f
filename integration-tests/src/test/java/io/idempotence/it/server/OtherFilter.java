package io.idempotence.it.server;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;

/** How a filter of others treats the response. */
enum OtherFilter {
    /** Holds the body until the last dispatch, in which it looks for its wrapper, as Spring's ShallowEtagHeaderFilter does. */
    FINDS_ITS_WRAPPER(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR)),
    BUFFERS_EVERY_DISPATCH(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR)),
    BUFFERS_REQUESTS(EnumSet.of(DispatcherType.REQUEST)),
    PASSES_THROUGH(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR));

    private final EnumSet<DispatcherType> dispatches;

    OtherFilter(EnumSet<DispatcherType> dispatches) {
        this.dispatches = dispatches;
    }

    void add(ServletContext context) {
        FilterRegistration.Dynamic filter = context.addFilter("other", filter());
        filter.setAsyncSupported(true);
        filter.addMappingForUrlPatterns(dispatches, true, "/*");
    }

    private Filter filter() {
        return switch (this) {
            case FINDS_ITS_WRAPPER -> OtherFilter::findItsWrapper;
            case BUFFERS_EVERY_DISPATCH, BUFFERS_REQUESTS -> OtherFilter::buffer;
            case PASSES_THROUGH ->
                (request, response, chain) ->
                        chain.doFilter(request, new HttpServletResponseWrapper((HttpServletResponse) response));
        };
    }

    private static void findItsWrapper(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        ServletResponse passed = response;
        if (request.getDispatcherType() != DispatcherType.ASYNC) {
            passed = new Buffering((HttpServletResponse) response);
        }
        chain.doFilter(request, passed);
        if (!request.isAsyncStarted()) {
            ServletResponse found = passed;
            while (!(found instanceof Buffering)) {
                if (!(found instanceof ServletResponseWrapper wrapper)) {
                    throw new ServletException("wrapper not found");
                }
                found = wrapper.getResponse();
            }
            ((Buffering) found).end();
        }
    }

    private static void buffer(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        Buffering buffering = new Buffering((HttpServletResponse) response);
        chain.doFilter(request, buffering);
        buffering.end();
    }

    private static final class Buffering extends HttpServletResponseWrapper {
        private final ByteArrayOutputStream held = new ByteArrayOutputStream();
        private PrintWriter writer;

        Buffering(HttpServletResponse response) {
            super(response);
        }

        @Override
        public ServletOutputStream getOutputStream() {
            return new ServletOutputStream() {
                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setWriteListener(WriteListener listener) {
                    throw new IllegalStateException("not in these tests");
                }

                @Override
                public void write(int b) {
                    held.write(b);
                }
            };
        }

        @Override
        public PrintWriter getWriter() {
            if (writer == null) {
                writer = new PrintWriter(new OutputStreamWriter(held, StandardCharsets.UTF_8));
            }
            return writer;
        }

        @Override
        public void flushBuffer() {}

        void end() throws IOException {
            if (writer != null) {
                writer.flush();
            }
            if (held.size() > 0) {
                setHeader("X-Held", Integer.toString(held.size()));
                held.writeTo(super.getOutputStream());
                held.reset();
            }
        }
    }
}
