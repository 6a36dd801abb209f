package io.idempotence.it.matrix;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.it.container.ServletServer;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;

/** All handlers behind all stacks, with our filter in the middle or without it. */
final class MatrixApplication {
    static final String ERROR_PATH = "/error";

    private static final String RETURNED = MatrixApplication.class.getName();

    private final Function<Neighbour, Filter> filters;
    private final Consumer<ServletContext> ours;
    private final ExecutorService executor;
    private final Map<String, Visits> visits = new ConcurrentHashMap<>();

    /**
     * @param ours adds our filter, or nothing
     * @param executor of what handlers do later
     */
    MatrixApplication(Function<Neighbour, Filter> filters, Consumer<ServletContext> ours, ExecutorService executor) {
        this.filters = filters;
        this.ours = ours;
        this.executor = executor;
    }

    /** What the handler did with one ID. */
    static final class Visits {
        final AtomicInteger runs = new AtomicInteger();
        final CountDownLatch entered = new CountDownLatch(1);
        volatile CountDownLatch gate = new CountDownLatch(0);
    }

    Visits visits(String id) {
        return visits.computeIfAbsent(id, each -> new Visits());
    }

    void setUp(ServletContext context) {
        add(context, "outermost", EnumSet.of(DispatcherType.REQUEST), MatrixApplication::reportReturn);
        addNeighbours(context, Stack.Place.FRONT);
        ours.accept(context);
        addNeighbours(context, Stack.Place.BEHIND);
        ServletRegistration.Dynamic servlet =
                context.addServlet("handler", ServletServer.servlet((request, response) -> serve(request, response)));
        servlet.setAsyncSupported(true);
        servlet.addMapping("/*");
    }

    private void addNeighbours(ServletContext context, Stack.Place place) {
        for (Stack stack : Stack.all()) {
            if (stack.place() == place) {
                Filter filter = filters.apply(stack.neighbour());
                String paths = "/" + stack.path() + "/";
                add(context, stack.path(), stack.neighbour().dispatcherTypes(), (request, response, chain) -> {
                    if (path(request).startsWith(paths)) {
                        filter.doFilter(request, response, chain);
                    } else {
                        chain.doFilter(request, response);
                    }
                });
            }
        }
    }

    private static void add(ServletContext context, String name, Set<DispatcherType> types, Filter filter) {
        FilterRegistration.Dynamic registration = context.addFilter(name, filter);
        registration.setAsyncSupported(true);
        registration.addMappingForUrlPatterns(EnumSet.copyOf(types), true, "/*");
    }

    /** Of the request itself, also in an ERROR dispatch. */
    private static String path(ServletRequest request) {
        Object original = request.getAttribute(RequestDispatcher.ERROR_REQUEST_URI);
        return original != null ? original.toString() : ((HttpServletRequest) request).getRequestURI();
    }

    private static void reportReturn(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        CountDownLatch returned = new CountDownLatch(1);
        request.setAttribute(RETURNED, returned);
        try {
            chain.doFilter(request, response);
        } finally {
            returned.countDown();
        }
    }

    private void serve(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException {
        if (request.getDispatcherType() == DispatcherType.ERROR) {
            response.setContentType("application/problem+json");
            response.setCharacterEncoding("UTF-8");
            response.getWriter()
                    .print("{\"status\":" + request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE) + ",\"detail\":\""
                            + request.getAttribute(RequestDispatcher.ERROR_MESSAGE) + " \u20ac\"}");
            return;
        }
        CountDownLatch returned = (CountDownLatch) request.getAttribute(RETURNED);
        HandlerKind.Run run = new HandlerKind.Run(
                request,
                response,
                task -> executor.execute(() -> {
                    try {
                        await(returned);
                        task.run();
                    } catch (IOException e) {
                        throw new IllegalStateException("a handler could not respond", e);
                    }
                }));
        if (!run.isRedispatch()) {
            Visits visits = visits(request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY));
            visits.runs.incrementAndGet();
            visits.entered.countDown();
            await(visits.gate);
        }
        String path = path(request);
        HandlerKind.valueOf(path.substring(path.lastIndexOf('/') + 1).toUpperCase(Locale.ROOT))
                .respond(run);
    }

    static void await(CountDownLatch latch) {
        try {
            if (!latch.await(2, TimeUnit.MINUTES)) {
                throw new IllegalStateException("nothing happened for 2 min");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
