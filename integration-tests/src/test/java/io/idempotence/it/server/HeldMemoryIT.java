package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.FaultyStorage;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory that requests hold: everything counts as often as it is in memory. */
class HeldMemoryIT extends FilterTestBase {
    private static final String FORM_TYPE = "application/x-www-form-urlencoded";

    /** What each caller is at. */
    private final Map<Thread, String> calls = new ConcurrentHashMap<>();

    private ServletServer serveWithOneMebibyte(int responseSize) {
        return serve(
                (request, response) -> respond(response, 200, "x".repeat(responseSize)),
                filter -> filter.maxMemory(1 << 20).maxFormSize(1 << 20));
    }

    @Test
    void partsThatTheContainerHoldsCount() {
        multipart = new MultipartConfigElement("", -1, -1, 4 << 20);
        ServletServer server = serveWithOneMebibyte(2);
        assertThat(refusal(post(server.uri("/p"), "small", part(100), "Content-Type", multipart())))
                .isNull();
        assertThat(refusal(post(server.uri("/p"), "large", part(1100 << 10), "Content-Type", multipart())))
                .isEqualTo("overloaded");
        assertThat(refusal(post(server.uri("/p"), "next", part(1000 << 10), "Content-Type", multipart())))
                .isNull();
        assertThat(runs).hasValue(2);
    }

    @Test
    void textOfPartsCountsAsOftenAsParametersOfAFormDo() {
        multipart = new MultipartConfigElement("", -1, -1, 4 << 20);
        ServletServer server = serveWithOneMebibyte(2);
        String files = part(700 << 10).replace("--b--\r\n", "") + part(180 << 10);
        assertThat(refusal(post(server.uri("/p"), "files", files, "Content-Type", multipart())))
                .isNull();
        String fileAndText = files.replaceFirst("(?s)(--b.*--b.*); filename=\"f\"", "$1");
        assertThat(refusal(post(server.uri("/p"), "text", fileAndText, "Content-Type", multipart())))
                .isEqualTo("overloaded");
        assertThat(runs).hasValue(1);
    }

    private static String multipart() {
        return "multipart/form-data; boundary=b";
    }

    private static String part(int size) {
        return "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + "x".repeat(size)
                + "\r\n--b--\r\n";
    }

    @Test
    void anUnpackedBodyCountsWhileItIsCompared() throws IOException {
        ServletServer server = serveWithOneMebibyte(2);
        assertThat(refusal(zipped(server, "small", 500 << 10))).isNull();
        assertThat(refusal(zipped(server, "large", 5 << 20))).isEqualTo("overloaded");
        assertThat(refusal(zipped(server, "next", 500 << 10))).isNull();
        assertThat(runs).hasValue(2);
    }

    private static HttpResponse<byte[]> zipped(ServletServer server, String id, int size) throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(body)) {
            out.write(new byte[size]);
        }
        return Http.send(HttpRequest.newBuilder(server.uri("/p"))
                .header("Idempotency-Key", id)
                .header("Content-Encoding", "gzip")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body.toByteArray()))
                .build());
    }

    @Test
    void parametersOfAFormCount() {
        ServletServer server = serveWithOneMebibyte(2);
        String form = "a=" + "x".repeat(500 << 10);
        assertThat(refusal(post(server.uri("/p"), "plain", form, "Content-Type", "text/plain")))
                .isNull();
        assertThat(refusal(post(server.uri("/p"), "form", form, "Content-Type", FORM_TYPE)))
                .isEqualTo("overloaded");
        assertThat(runs).hasValue(1);
    }

    @Test
    void eachParameterOfAFormCounts() {
        ServletServer server = serve(
                (request, response) -> respond(response, 200, "ok"),
                filter -> filter.maxMemory(1 << 20).maxFormParameters(100_000));
        String many = "a&".repeat(50_000);
        assertThat(refusal(post(server.uri("/p"), "plain", many, "Content-Type", "text/plain")))
                .isNull();
        assertThat(refusal(post(server.uri("/p"), "form", many, "Content-Type", FORM_TYPE)))
                .isEqualTo("overloaded");
        assertThat(runs).hasValue(1);
    }

    @Test
    void parametersCountUntilTheErrorPageHasAskedForThem() throws Exception {
        errorPage = "/page";
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        ServletServer server = serve(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.ERROR) {
                        assertThat(request.getParameter("a")).isEqualTo("1");
                        asked.countDown();
                        awaitLatch(done);
                    } else if (request.getParameter("a") != null) {
                        response.sendError(422);
                    }
                },
                filter -> filter.maxMemory(1 << 20).maxFormSize(1 << 20));
        String form = "a=1&b=" + "x".repeat(190 << 10);
        CompletableFuture<HttpResponse<byte[]>> failed = CompletableFuture.supplyAsync(
                () -> post(server.uri("/p"), "failed", form, "Content-Type", FORM_TYPE), executor);
        awaitLatch(asked);
        String large = "x".repeat(700 << 10);
        assertThat(refusal(post(server.uri("/p"), "meanwhile", large))).isEqualTo("overloaded");
        done.countDown();
        assertThat(failed.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(422);
        await().until(() -> refusal(post(server.uri("/p"), UUID.randomUUID().toString(), large)) == null);
    }

    /** A storage that holds each claim before it loads a result. */
    private static final class HeldClaims {
        final AtomicBoolean holds = new AtomicBoolean();
        final AtomicInteger begun = new AtomicInteger();
        final CountDownLatch mayEnd = new CountDownLatch(1);
        final FaultyStorage storage = new FaultyStorage(redisStorage()).before((call, key) -> {
            if (holds.get() && call == FaultyStorage.Call.CLAIM) {
                begun.incrementAndGet();
                awaitLatch(mayEnd);
            }
        });
    }

    private ServletServer serveWithAResultToLoad(HeldClaims claims, Handler handler) {
        ServletServer server = serve(idempotence(claims.storage), handler, filter -> filter.maxMemory(1 << 20));
        assertThat(replayed(call(server))).isFalse();
        assertThat(replayed(call(server))).isTrue();
        claims.holds.set(true);
        return server;
    }

    @Test
    void duplicatesAtOnceLoadNoMoreThanHalfOfTheMemory() {
        int callers = 10;
        HeldClaims claims = new HeldClaims();
        ServletServer server =
                serveWithAResultToLoad(claims, (request, response) -> respond(response, 200, "x".repeat(150 << 10)));
        AtomicInteger refused = new AtomicInteger();
        List<CompletableFuture<Void>> duplicates = IntStream.range(0, callers)
                .mapToObj(caller -> CompletableFuture.supplyAsync(() -> call(server), executor)
                        .thenAccept(response -> {
                            if ("overloaded".equals(refusal(response))) {
                                refused.incrementAndGet();
                            }
                        }))
                .toList();
        await().until(() -> claims.begun.get() + refused.get() == callers);
        assertThat(claims.begun).hasValueBetween(3, 6);
        claims.mayEnd.countDown();
        assertThat(CompletableFuture.allOf(duplicates.toArray(CompletableFuture[]::new)))
                .succeedsWithin(Duration.ofMinutes(4));
        assertThat(runs).hasValue(1);
    }

    @Test
    void largeReplayLetFirstAttemptsBeRefused() {
        int callers = 30;
        HeldClaims claims = new HeldClaims();
        ServletServer server = serveWithAResultToLoad(
                claims,
                (request, response) -> respond(
                        response, 200, request.getRequestURI().equals("/small") ? "ok" : "x".repeat(150 << 10)));
        List<CompletableFuture<HttpResponse<byte[]>>> first = IntStream.range(0, callers)
                .mapToObj(caller ->
                        CompletableFuture.supplyAsync(() -> post(server.uri("/small"), id + caller, "{}"), executor))
                .toList();
        await().until(() -> claims.begun.get() == callers || first.stream().anyMatch(CompletableFuture::isDone));
        claims.mayEnd.countDown();
        assertThat(first)
                .allSatisfy(response ->
                        assertThat(refusal(response.get(60, TimeUnit.SECONDS))).isNull());
        assertThat(runs).hasValue(callers + 1);
    }

    @Test
    void replayThatIsLargerThanAllMemoryBlockedTheFilter() {
        Idempotence idempotence = idempotence();
        Handler handler = (request, response) ->
                respond(response, 200, request.getRequestURI().equals("/large") ? "x".repeat(900 << 10) : "ok");
        ServletServer roomy = serve(idempotence, handler, filter -> filter);
        assertThat(refusal(post(roomy.uri("/large"), "large", "{}"))).isNull();
        ServletServer tight = serve(idempotence, handler, filter -> filter.maxMemory(1 << 20));
        assertThat(refusal(post(tight.uri("/large"), "large", "{}"))).isEqualTo("overloaded");
        for (int i = 0; i < 3; i++) {
            assertThat(refusal(post(tight.uri("/small"), id + i, "x".repeat(700 << 10))))
                    .isNull();
            assertThat(replayed(post(tight.uri("/small"), id + i, "x".repeat(700 << 10))))
                    .isTrue();
        }
    }

    @Test
    void copiesOfAResponseCount() {
        ServletServer server = serveWithOneMebibyte(300 << 10);
        assertThat(post(server.uri("/p"), id, "{}").body()).hasSize(300 << 10);
        assertThat(refusal(post(server.uri("/p"), id, "{}"))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    // ---- whatever happens

    private static final int MEMORY = 4 << 20;
    private static final int LARGEST_PART = 300 << 10;

    /** The calls that are made in any order and side by side, with a storage that fails at times. */
    private enum Call {
        PLAIN("/written", "text/plain"),
        FORM("/form", FORM_TYPE),
        MALFORMED_FORM("/form", FORM_TYPE),
        FORM_FAILS("/form-fails", FORM_TYPE),
        MULTIPART("/multipart", "multipart/form-data; boundary=b"),
        FAILS("/fails", "text/plain"),
        ERROR_PAGE("/error", "text/plain"),
        OVERSIZE("/oversize", "text/plain"),
        ASYNC("/async", "text/plain"),
        ASYNC_DISPATCH("/dispatches", "text/plain"),
        ASYNC_TIMEOUT("/times-out", "text/plain"),
        NON_BLOCKING("/non-blocking", "text/plain"),
        LEAVES_DURING_BODY("/written", "text/plain"),
        LEAVES_DURING_RESPONSE("/oversize", "text/plain"),
        LEAVES_DURING_WORK("/async", "text/plain");

        final String path;
        final String type;

        Call(String path, String type) {
            this.path = path;
            this.type = type;
        }

        boolean leaves() {
            return name().startsWith("LEAVES");
        }

        String body(Random random) {
            String text = "x".repeat(random.nextInt(LARGEST_PART));
            return switch (this) {
                case FORM, FORM_FAILS -> "a=1&b=" + text;
                case MALFORMED_FORM -> "a=%zz&b=" + text;
                case MULTIPART -> part(text.length());
                default -> text;
            };
        }
    }

    private void handle(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException {
        byte[] some = new byte[50_000];
        if (request.getDispatcherType() != DispatcherType.REQUEST) {
            response.getOutputStream().write(some);
            return;
        }
        switch (request.getRequestURI()) {
            case "/form" -> respond(response, 200, request.getParameterMap().keySet() + "");
            case "/form-fails" -> {
                assertThat(request.getParameter("a")).isEqualTo("1");
                response.sendError(422);
            }
            case "/multipart" -> respond(response, 200, request.getParts().size() + "");
            case "/fails" -> throw new IllegalStateException("as the test asks");
            case "/error" -> response.sendError(422);
            case "/oversize" -> response.getOutputStream().write(new byte[1 << 20]);
            case "/async" -> {
                AsyncContext async = request.startAsync();
                executor.execute(() -> {
                    try {
                        async.getResponse().getOutputStream().write(some);
                    } catch (IOException | RuntimeException theContainerHasEndedTheResponse) {
                        return;
                    }
                    async.complete();
                });
            }
            case "/dispatches" -> request.startAsync().dispatch("/dispatched");
            case "/times-out" -> request.startAsync().setTimeout(SHORT_TIMEOUT_MILLIS);
            case "/non-blocking" -> writeWithoutBlocking(request.startAsync(), some);
            default -> respond(response, 200, text(request));
        }
    }

    private static void writeWithoutBlocking(AsyncContext async, byte[] some) throws IOException {
        ServletOutputStream out = async.getResponse().getOutputStream();
        out.setWriteListener(new WriteListener() {
            @Override
            public void onWritePossible() throws IOException {
                out.write(some);
                async.complete();
            }

            @Override
            public void onError(Throwable thrown) {
                async.complete();
            }
        });
    }

    private void send(ServletServer server, Call call, String key, Random random) {
        String body = call.body(random);
        if (call.leaves()) {
            leave(server, call, key, body);
            return;
        }
        String[] headers = random.nextBoolean()
                ? new String[] {"Content-Type", call.type}
                : new String[] {"Content-Type", call.type, "Prefer", "wait=1"};
        try {
            post(server.uri(call.path), key, body, headers);
        } catch (UncheckedIOException e) {
            // A response that is cut: what the caller sees is not the point here.
            assertThat(e.getCause()).isNotInstanceOf(HttpTimeoutException.class);
        }
    }

    private static void leave(ServletServer server, Call call, String key, String body) {
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            socket.setSoTimeout(30_000);
            String request = "POST " + call.path + " HTTP/1.1\r\nHost: 127.0.0.1:" + server.port()
                    + "\r\nIdempotency-Key: " + key + "\r\nContent-Type: text/plain\r\nContent-Length: "
                    + (body.length() + (call == Call.LEAVES_DURING_BODY ? 1 : 0)) + "\r\n\r\n" + body;
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            socket.getOutputStream().flush();
            if (call == Call.LEAVES_DURING_RESPONSE) {
                socket.getInputStream().readNBytes(100);
            }
            socket.setSoLinger(true, 0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void allMemoryIsFreeAfterWhateverHappened() {
        allMemoryIsFreeAfterWhateverElseHappened(1);
    }

    @Tag("all")
    @ParameterizedTest
    @ValueSource(longs = {2, 3})
    void allMemoryIsFreeAfterWhateverElseHappened(long seed) {
        multipart = new MultipartConfigElement("", -1, -1, 4 << 20);
        errorPage = "/page";
        AtomicBoolean fails = new AtomicBoolean(true);
        FaultyStorage storage = new FaultyStorage(redisStorage()).before((call, key) -> {
            if (fails.get() && ThreadLocalRandom.current().nextInt(10) == 0) {
                throw new IllegalStateException("as the test asks");
            }
        });
        ServletServer server = serve(
                idempotence(storage),
                this::handle,
                filter -> filter.maxMemory(MEMORY).maxFormSize(MEMORY).maxResponseBody(200_000));
        Random random = new Random(seed);
        List<CompletableFuture<Void>> callers = IntStream.range(0, 4)
                .mapToObj(caller -> random.nextLong())
                .map(own -> CompletableFuture.runAsync(() -> callAtRandom(server, new Random(own)), executor))
                .toList();
        assertThat(CompletableFuture.allOf(callers.toArray(CompletableFuture[]::new)))
                .as(this::callsAndThreads)
                // before a request gives up, so that the threads show what it waits for
                .succeedsWithin(Duration.ofMinutes(4));
        fails.set(false);
        // A request that needs nearly all of it finds it, once the last handler has ended.
        // Jetty may cut one that it has refused before.
        String large = "x".repeat(MEMORY - 2048);
        await().ignoreExceptionsInstanceOf(UncheckedIOException.class)
                .until(() ->
                        refusal(post(server.uri("/fails"), UUID.randomUUID().toString(), large)) == null);
    }

    private String callsAndThreads() {
        StringBuilder all = new StringBuilder("calls " + calls + "\n");
        Thread.getAllStackTraces().forEach((thread, stack) -> {
            all.append(thread).append('\n');
            Stream.of(stack).forEach(frame -> all.append("    ").append(frame).append('\n'));
        });
        return all.toString();
    }

    private void callAtRandom(ServletServer server, Random random) {
        for (int i = 0; i < 40; i++) {
            Call call = Call.values()[random.nextInt(Call.values().length)];
            calls.put(Thread.currentThread(), i + " " + call);
            // Few IDs, so that there are replays, duplicates that wait and refusals.
            send(server, call, call + "-" + random.nextInt(8), random);
        }
    }
}
