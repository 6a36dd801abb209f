package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.sendAsync;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.servlet.RequestSettings;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.Jedis;

/** Duplicates with {@code Prefer: wait}, in every container, on a real Redis. */
@ParameterizedClass
@MethodSource("io.idempotence.it.container.Container#available")
class PreferWaitIT {
    @RegisterExtension
    static final RedisOfAClass redis = new RedisOfAClass();

    private final AtomicInteger runs = new AtomicInteger();
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final CountDownLatch started = new CountDownLatch(1);
    private final CountDownLatch mayEnd = new CountDownLatch(1);
    private final List<AutoCloseable> toClose = new ArrayList<>();
    private final String id = UUID.randomUUID().toString();

    @Parameter
    Container container;

    @AfterEach
    void closeAll() throws Exception {
        mayEnd.countDown();
        for (int i = toClose.size() - 1; i >= 0; i--) {
            toClose.get(i).close();
        }
    }

    /** A filter of the application, in front of the one under test. */
    @FunctionalInterface
    private interface FilterInFront {
        void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException;
    }

    private ServletServer serve(Handler handler, boolean async, UnaryOperator<IdempotenceFilterBuilder> options) {
        return serve(handler, async, PreferWaitIT::passOn, options);
    }

    private ServletServer serve(
            Handler handler, FilterInFront inFront, UnaryOperator<IdempotenceFilterBuilder> options) {
        return serve(handler, true, inFront, options);
    }

    private ServletServer serve(
            Handler handler, boolean async, FilterInFront inFront, UnaryOperator<IdempotenceFilterBuilder> options) {
        return serve(idempotence(), handler, async, inFront, options);
    }

    private Idempotence idempotence() {
        Idempotence idempotence = Idempotence.builder(redis.connect())
                .listener((event, which) -> events.add(event))
                .build();
        toClose.add(idempotence);
        return idempotence;
    }

    private ServletServer serve(
            Idempotence idempotence,
            Handler handler,
            boolean async,
            FilterInFront inFront,
            UnaryOperator<IdempotenceFilterBuilder> options) {
        ServletServer server = container.start(
                context -> {
                    FilterRegistration.Dynamic front = context.addFilter("front", inFront::doFilter);
                    front.setAsyncSupported(async);
                    front.addMappingForUrlPatterns(null, false, "/*");
                    options.apply(IdempotenceFilter.builder(idempotence).maxWait(Duration.ofMinutes(5)))
                            .build()
                            .install(context);
                    ServletRegistration.Dynamic servlet = context.addServlet("handler", ServletServer.servlet(handler));
                    servlet.setAsyncSupported(true);
                    servlet.addMapping("/*");
                },
                null);
        toClose.add(server);
        return server;
    }

    private static void passOn(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        chain.doFilter(request, response);
    }

    private ServletServer serve() {
        return serve(this::slow, true, filter -> filter);
    }

    /** Runs until the test lets it end. */
    private void slow(HttpServletRequest request, HttpServletResponse response) throws IOException {
        int run = runs.incrementAndGet();
        started.countDown();
        try {
            if (!mayEnd.await(5, TimeUnit.MINUTES)) {
                throw new IOException("the test never let the handler end");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        respond(response, 201, "run " + run);
    }

    private static void respond(HttpServletResponse response, int status, String body) throws IOException {
        response.setStatus(status);
        response.setContentType("text/plain;charset=utf-8");
        response.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
    }

    private CompletableFuture<HttpResponse<byte[]>> first(ServletServer server) throws InterruptedException {
        CompletableFuture<HttpResponse<byte[]>> first = sendAsync(request("POST", server.uri("/pay"), id, "{}"));
        assertThat(started.await(60, TimeUnit.SECONDS)).isTrue();
        return first;
    }

    private CompletableFuture<HttpResponse<byte[]>> duplicate(ServletServer server, String prefer) {
        return sendAsync(request("POST", server.uri("/pay"), id, "{}", "Prefer", prefer));
    }

    private void awaitDuplicates(int number) {
        await().atMost(Duration.ofMinutes(2)).until(() -> waiting() >= number);
    }

    private long waiting() {
        return Collections.frequency(events, IdempotenceEvent.IN_PROGRESS);
    }

    /** A duplicate that did not come to wait shows why. */
    private static void assertNoneHasEnded(List<CompletableFuture<HttpResponse<byte[]>>> duplicates) {
        for (CompletableFuture<HttpResponse<byte[]>> each : duplicates) {
            assertThat(each.isDone() ? text(each.join()) : "").as("%s", each).isEmpty();
        }
    }

    private static void assertReplays(CompletableFuture<HttpResponse<byte[]>> duplicate) {
        HttpResponse<byte[]> response = duplicate.join();
        assertThat(response.statusCode()).isEqualTo(201);
        assertThat(text(response)).isEqualTo("run 1");
        assertThat(replayed(response)).isTrue();
        assertThat(response.headers().firstValue("Content-Type"))
                .hasValueSatisfying(type -> assertThat(type).startsWithIgnoringCase("text/plain;charset=utf-8"));
    }

    private static void assertInProgress(HttpResponse<byte[]> response) {
        assertThat(response.statusCode()).isEqualTo(409);
        assertThat(refusal(response)).isEqualTo("in-progress");
        assertThat(response.headers().firstValue("Retry-After-Ms")).isPresent();
    }

    private long commands() {
        try (Jedis jedis = redis.server().jedis()) {
            return jedis.info("commandstats")
                    .lines()
                    .filter(line -> line.startsWith("cmdstat_eval"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll(".*:calls=([0-9]+),.*", "$1")))
                    .sum();
        }
    }

    private static Set<Thread> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().contains("idempotence"))
                .collect(Collectors.toSet());
    }

    /** A duplicate that waits on a thread of the container is inside the filter. */
    private static long threadsOfTheContainerInTheFilter() {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(thread -> !thread.getKey().getName().contains("idempotence"))
                .filter(thread -> Stream.of(thread.getValue())
                        .anyMatch(frame -> frame.getClassName().equals(IdempotenceFilter.class.getName())))
                .count();
    }

    @Test
    @DisplayName(
            "1,000 simultaneous duplicates over two instances: one execution, the same response for all, bounded calls")
    void thousandDuplicatesOverTwoInstances() throws Exception {
        // Those of clients that other tests in this process used.
        Set<Thread> others = threads();
        ServletServer one = serve(this::slow, true, filter -> filter);
        ServletServer two = serve(this::slow, true, filter -> filter);
        CompletableFuture<HttpResponse<byte[]>> first = first(one);
        long before = commands();
        long begin = System.nanoTime();
        List<CompletableFuture<HttpResponse<byte[]>>> duplicates = new ArrayList<>();
        while (duplicates.size() < 1_000) {
            // No more at once than a server's queue of new connections holds.
            for (int i = 0; i < 50; i++) {
                duplicates.add(duplicate(one, "wait=300"));
                duplicates.add(duplicate(two, "wait=300"));
            }
            await().atMost(Duration.ofMinutes(2)).until(() -> {
                assertNoneHasEnded(duplicates);
                return waiting() >= duplicates.size();
            });
        }
        await("only the first attempt is on a thread").until(() -> threadsOfTheContainerInTheFilter() == 1);
        Set<Thread> all = threads();
        all.removeAll(others);

        mayEnd.countDown();

        assertThat(text(first.join())).isEqualTo("run 1");
        assertThat(replayed(first.join())).isFalse();
        duplicates.forEach(PreferWaitIT::assertReplays);
        assertThat(runs).hasValue(1);
        // Two instances with their polls and their background.
        assertThat(all).hasSizeLessThanOrEqualTo(6);
        // Two scripts that a server did not know are sent twice.
        // Each instance polls 6 times at shorter intervals, then twice a second.
        long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begin) + 1;
        assertThat(commands() - before).isBetween(1_000L, 1_000L + 2 * 2 + 2 + 2 * (6 + 2 * seconds));
    }

    @Test
    void whoDoesNotPreferToWaitIsRefusedAtOnce() throws Exception {
        ServletServer server = serve();
        first(server);

        for (String prefer : List.of("wait=0", "return=minimal", "wait=soon", "wait=-5", "await=5", "wait")) {
            assertInProgress(duplicate(server, prefer).join());
        }
        assertInProgress(post(server.uri("/pay"), id, "{}"));
    }

    @Test
    @DisplayName("RFC 7240: the preference is found among others, in any case, quoted or not; the first one counts")
    void thePreferenceIsFoundAmongOthers() throws Exception {
        ServletServer server = serve();
        first(server);
        List<CompletableFuture<HttpResponse<byte[]>>> duplicates = List.of(
                duplicate(server, "wait=300"),
                duplicate(server, "Wait = \"300\""),
                duplicate(server, "respond-async, wait=300"),
                duplicate(server, "return=minimal; foo=\"bar\", wait=300; x=y"),
                duplicate(server, "wait=300, wait=0"),
                sendAsync(request(
                        "POST", server.uri("/pay"), id, "{}", "Prefer", "return=minimal", "Prefer", "wait=300")));
        awaitDuplicates(duplicates.size());

        mayEnd.countDown();

        duplicates.forEach(PreferWaitIT::assertReplays);
    }

    @Test
    void theServersOwnLimitCounts() throws Exception {
        ServletServer server = serve(this::slow, true, filter -> filter.maxWait(Duration.ofMillis(50)));
        first(server);

        assertInProgress(duplicate(server, "wait=999999999").join());
    }

    @Test
    void aServerMayRefuseToLetAnybodyWait() throws Exception {
        ServletServer server = serve(this::slow, true, filter -> filter.maxWait(Duration.ZERO));
        first(server);

        assertInProgress(duplicate(server, "wait=300").join());
    }

    @Test
    void theSettingsOfARequestLimitItsWait() throws Exception {
        ServletServer server = serve(
                this::slow,
                true,
                (request, response, chain) -> {
                    RequestSettings.choose(
                            request.getServletContext(),
                            (chosen, asConfigured) ->
                                    new RequestSettings(true, true, asConfigured.policy(), Duration.ofMillis(50)));
                    chain.doFilter(request, response);
                },
                filter -> filter);
        first(server);

        assertInProgress(duplicate(server, "wait=999999999").join());
    }

    @Test
    void whoWaitsForAReleasedAttemptMayRunNext() throws Exception {
        ServletServer server = serve(
                (request, response) -> {
                    if (runs.get() == 0) {
                        slow(request, response);
                        throw new IOException("the ledger is away");
                    }
                    respond(response, 201, "run " + runs.incrementAndGet());
                },
                true,
                filter -> filter);
        first(server);
        CompletableFuture<HttpResponse<byte[]>> duplicate = duplicate(server, "wait=300");
        awaitDuplicates(1);

        mayEnd.countDown();

        assertInProgress(duplicate.join());
        assertThat(text(post(server.uri("/pay"), id, "{}"))).isEqualTo("run 2");
    }

    @Test
    @DisplayName("a filter in front without asynchronous support: 16 wait on threads, the others are refused at once")
    void withoutAsyncSupportAFewWaitOnThreads() throws Exception {
        ServletServer server = serve(this::slow, false, filter -> filter);
        first(server);
        List<CompletableFuture<HttpResponse<byte[]>>> duplicates = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            duplicates.add(duplicate(server, "wait=300"));
        }
        await().until(() ->
                duplicates.stream().filter(CompletableFuture::isDone).count() == 24);

        mayEnd.countDown();

        List<HttpResponse<byte[]>> responses =
                duplicates.stream().map(CompletableFuture::join).toList();
        assertThat(responses.stream().filter(response -> response.statusCode() == 201 && replayed(response)))
                .hasSize(16);
        responses.stream().filter(response -> response.statusCode() != 201).forEach(PreferWaitIT::assertInProgress);
        assertThat(runs).hasValue(1);
    }

    @Test
    void aCallerWhoLeavesWhileItWaitsHarmsNobody() throws Exception {
        ServletServer server = serve();
        CompletableFuture<HttpResponse<byte[]>> first = first(server);
        CompletableFuture<HttpResponse<byte[]>> staying = duplicate(server, "wait=300");
        for (int i = 0; i < 20; i++) {
            try (Socket socket = new Socket("127.0.0.1", server.port())) {
                socket.setSoLinger(true, 0);
                socket.getOutputStream()
                        .write(("POST /pay HTTP/1.1\r\nHost: x\r\nIdempotency-Key: " + id
                                        + "\r\nPrefer: wait=300\r\nContent-Length: 2\r\n\r\n{}")
                                .getBytes(StandardCharsets.US_ASCII));
                socket.getOutputStream().flush();
                awaitDuplicates(2 + i);
            }
        }

        mayEnd.countDown();

        assertThat(first.join().statusCode()).isEqualTo(201);
        assertReplays(staying);
        assertThat(text(post(server.uri("/pay"), id, "{}"))).isEqualTo("run 1");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P6: no duplicate waits on a service that stops")
    void nobodyWaitsOnAServiceThatStops() throws Exception {
        Idempotence idempotence = idempotence();
        ServletServer server = serve(
                idempotence, this::slow, true, PreferWaitIT::passOn, filter -> filter.maxWait(Duration.ofMinutes(10)));
        first(server);
        CompletableFuture<HttpResponse<byte[]>> duplicate = duplicate(server, "wait=600");
        awaitDuplicates(1);
        await("only the first attempt is on a thread").until(() -> threadsOfTheContainerInTheFilter() == 1);
        idempotence.close();

        HttpResponse<byte[]> response = duplicate.orTimeout(2, TimeUnit.MINUTES).join();
        assertThat(response.statusCode()).isEqualTo(503);
        assertThat(refusal(response)).isEqualTo("storage-unavailable");
    }

    /** No response would leave the caller waiting; an empty one would look like a success. */
    @Test
    void duplicateThatWaitedForAResponseThatCannotBeGivenIsRefused() throws Exception {
        FilterInFront breaking = (request, response, chain) ->
                chain.doFilter(request, new HttpServletResponseWrapper((HttpServletResponse) response) {
                    @Override
                    public void setHeader(String name, String value) {
                        if (name.equals(IdempotenceHeaders.IDEMPOTENT_REPLAYED)) {
                            throw new IllegalStateException("a bug of a filter in front");
                        }
                        super.setHeader(name, value);
                    }
                });
        ServletServer server = serve(this::slow, breaking, filter -> filter);
        CompletableFuture<HttpResponse<byte[]>> first = first(server);
        CompletableFuture<HttpResponse<byte[]>> duplicate = duplicate(server, "wait=300");
        awaitDuplicates(1);

        mayEnd.countDown();

        assertThat(text(first.join())).isEqualTo("run 1");
        assertThat(duplicate.orTimeout(2, TimeUnit.MINUTES).join().statusCode()).isEqualTo(500);
    }
}
