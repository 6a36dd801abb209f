package io.idempotence.it.matrix;

import static org.awaitility.Awaitility.await;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.wire.RawConnection;
import io.idempotence.it.wire.RawResponse;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestScope;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.IdempotenceStorage;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** The run of all requests of the matrix in one container, with our filter and without it, and what came back. */
final class Matrix implements AutoCloseable {
    /** More than these at once, and duplicates that wait on their threads would be refused. */
    private static final int CELLS_AT_ONCE = 8;

    /** The way in which an application registers our filter. */
    enum Registration {
        ABSENT,
        INSTALLED,
        REQUEST_ONLY
    }

    /**
     * The responses of one handler behind one stack.
     *
     * @param without from the stack without our filter
     * @param runs of the handler, for the first request and its retry
     */
    record Cell(
            Stack stack,
            HandlerKind kind,
            Registration registration,
            RawResponse without,
            RawResponse first,
            RawResponse retry,
            int runs,
            RawResponse firstOfPair,
            RawResponse waiting,
            int runsOfPair) {}

    private record Server(Registration registration, boolean compressing, boolean containersPage) {}

    private record Running(ServletServer server, MatrixApplication application) {}

    private final Container container;
    private final Map<Neighbour, Filter> filters = new EnumMap<>(Neighbour.class);
    private final ExecutorService handlers = Executors.newCachedThreadPool(named("matrix-handler"));
    private final ExecutorService cells = Executors.newFixedThreadPool(CELLS_AT_ONCE, named("matrix-cell"));
    private final ThreadLocal<String> claimed = new ThreadLocal<>();
    private final Map<String, CountDownLatch> duplicates = new ConcurrentHashMap<>();
    private final Idempotence idempotence = Idempotence.over(observed(IdempotenceStorage.inMemory()));
    private final Map<Server, Running> running = new ConcurrentHashMap<>();

    Matrix(Container container) {
        this.container = container;
        for (Neighbour neighbour : Neighbour.values()) {
            filters.put(neighbour, neighbour.filter());
        }
    }

    private static ThreadFactory named(String prefix) {
        AtomicInteger count = new AtomicInteger();
        return task -> new Thread(task, prefix + "-" + count.incrementAndGet());
    }

    /** A storage that reports when a duplicate has met its first attempt. */
    private IdempotenceStorage observed(IdempotenceStorage storage) {
        return (IdempotenceStorage) Proxy.newProxyInstance(
                Matrix.class.getClassLoader(),
                new Class<?>[] {IdempotenceStorage.class},
                (proxy, method, arguments) -> {
                    try {
                        Object result = method.invoke(storage, arguments);
                        if (result instanceof ClaimResult.InProgress) {
                            duplicate(claimed.get()).countDown();
                        }
                        return result;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    private CountDownLatch duplicate(String id) {
        return duplicates.computeIfAbsent(id, each -> new CountDownLatch(1));
    }

    /** Fills the matrix. */
    List<Cell> fill() throws Exception {
        List<Future<List<Cell>>> filling = new ArrayList<>();
        for (Stack stack : Stack.all()) {
            for (HandlerKind kind : HandlerKind.values()) {
                filling.add(cells.submit(() -> {
                    try {
                        return cellsOf(stack, kind);
                    } catch (RuntimeException e) {
                        throw new IllegalStateException("the cells of " + stack + ", " + kind, e);
                    }
                }));
            }
        }
        List<Cell> filled = new ArrayList<>();
        for (Future<List<Cell>> each : filling) {
            filled.addAll(each.get());
        }
        return filled;
    }

    private List<Cell> cellsOf(Stack stack, HandlerKind kind) {
        RawResponse without;
        try (RawConnection connection = connection(Registration.ABSENT, stack, kind)) {
            connection.send(request(stack, kind, UUID.randomUUID().toString(), ""));
            without = connection.receive();
        }
        List<Cell> cells = new ArrayList<>();
        for (Registration registration : EnumSet.of(Registration.INSTALLED, Registration.REQUEST_ONLY)) {
            try (RawConnection connection = connection(registration, stack, kind);
                    RawConnection other = connection(registration, stack, kind)) {
                String id = UUID.randomUUID().toString();
                MatrixApplication application =
                        running(registration, stack, kind).application();
                MatrixApplication.Visits visits = application.visits(id);
                connection.send(request(stack, kind, id, ""));
                RawResponse first = connection.receive();
                RawResponse retry = retry(connection, registration, kind, request(stack, kind, id, ""));
                if (retry.statusLine().contains(" 500 ") && !first.statusLine().contains(" 500 ")) {
                    throw new IllegalStateException(registration + ": the retry got " + retry);
                }

                String next = UUID.randomUUID().toString();
                MatrixApplication.Visits visitsOfPair = application.visits(next);
                visitsOfPair.gate = new CountDownLatch(1);
                connection.send(request(stack, kind, next, ""));
                MatrixApplication.await(visitsOfPair.entered);
                other.send(request(stack, kind, next, "Prefer: wait=10\r\n"));
                MatrixApplication.await(duplicate(next));
                visitsOfPair.gate.countDown();
                cells.add(new Cell(
                        stack,
                        kind,
                        registration,
                        without,
                        first,
                        retry,
                        visits.runs.get(),
                        connection.receive(),
                        other.receive(),
                        visitsOfPair.runs.get()));
            }
        }
        return cells;
    }

    /**
     * Sends the retry. Duplicates are refused as in progress for a moment where a response leaves before it is final: where the filter does
     * not see the dispatch that writes it, and in Undertow when the container itself sends the page of an error.
     */
    private static RawResponse retry(
            RawConnection connection, Registration registration, HandlerKind kind, String request) {
        Supplier<RawResponse> retry = () -> {
            connection.send(request);
            return connection.receive();
        };
        boolean unseen = registration == Registration.REQUEST_ONLY && kind.column() == HandlerKind.Column.DISPATCH;
        if (!unseen && !kind.wantsContainersPage()) {
            return retry.get();
        }
        return await().pollDelay(Duration.ZERO)
                .until(
                        retry::get,
                        response -> !Refusal.IN_PROGRESS
                                .code()
                                .equals(response.header(IdempotenceHeaders.IDEMPOTENCY_REFUSAL)));
    }

    private static String request(Stack stack, HandlerKind kind, String id, String headers) {
        return "POST /" + stack.path() + "/" + kind.path() + " HTTP/1.1\r\nHost: example.test\r\n"
                + "Content-Type: application/json\r\nContent-Length: 2\r\n"
                + IdempotenceHeaders.IDEMPOTENCY_KEY + ": " + id + "\r\n"
                + stack.neighbour().requestHeaders() + headers + "\r\n{}";
    }

    private RawConnection connection(Registration registration, Stack stack, HandlerKind kind) {
        return new RawConnection(running(registration, stack, kind).server().port());
    }

    private Running running(Registration registration, Stack stack, HandlerKind kind) {
        boolean compressing = stack.neighbour() == Neighbour.CONTAINER_GZIP;
        return running.computeIfAbsent(new Server(registration, compressing, kind.wantsContainersPage()), this::start);
    }

    private Running start(Server server) {
        MatrixApplication application =
                new MatrixApplication(filters::get, context -> addOurs(context, server.registration()), handlers);
        ServletServer.Starter starter = server.compressing() ? container.compressing() : container;
        return new Running(
                starter.start(application::setUp, server.containersPage() ? null : MatrixApplication.ERROR_PATH),
                application);
    }

    private void addOurs(ServletContext context, Registration registration) {
        if (registration == Registration.ABSENT) {
            return;
        }
        RequestScope principal = RequestScope.principal();
        IdempotenceFilter filter = IdempotenceFilter.builder(idempotence)
                .keepHeaders(HandlerKind.HANDLER_HEADER, "Vary")
                .scope(request -> {
                    claimed.set(request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY));
                    return principal.apply(request);
                })
                .build();
        if (registration == Registration.INSTALLED) {
            filter.install(context);
        } else {
            FilterRegistration.Dynamic plain = context.addFilter("idempotence", filter);
            plain.setAsyncSupported(true);
            plain.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
        }
    }

    @Override
    public void close() throws Exception {
        running.values().forEach(each -> each.server().close());
        idempotence.close();
        cells.shutdownNow();
        handlers.shutdownNow();
    }
}
