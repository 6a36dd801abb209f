package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import feign.FeignException;
import feign.Request;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.it.wire.RawServer;
import io.idempotence.it.wire.SideBySide;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import okhttp3.Call;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okhttp3.Response;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Responses that are cut, at each of their lines and at each of their bytes. Whatever the HTTP client makes of them, a call with an ID ends
 * with what the operation responded, or with the next attempt.
 */
class InterruptedResponsesIT {
    private static final String RESULT = "{\"order\":17,\"total\":42}";

    private static final String CREATED = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: "
            + RESULT.length() + "\r\nDate: Sun, 22 Nov 2026 02:00:00 GMT\r\n\r\n" + RESULT;

    private static final String CREATED_IN_CHUNKS =
            "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + Integer.toHexString(RESULT.length()) + "\r\n" + RESULT + "\r\n0\r\n\r\n";

    private static final String REPLAYED = CREATED.replace("Content-Type", "Idempotent-Replayed: true\r\nContent-Type");

    private static final String PROBLEM = "{\"title\":\"the first attempt is still running\"}";

    /** As Tomcat writes it: the framework's headers first. */
    private static final String IN_PROGRESS =
            "HTTP/1.1 409 \r\nIdempotency-Refusal: in-progress\r\nRetry-After-Ms: 1\r\n"
                    + "Cache-Control: no-store\r\nContent-Type: application/problem+json\r\nContent-Length: "
                    + PROBLEM.length() + "\r\nConnection: close\r\n\r\n" + PROBLEM;

    /** With the header that matters behind the one that frames. */
    private static final String IN_PROGRESS_LAST = "HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\n"
            + "Content-Length: " + PROBLEM.length()
            + "\r\nRetry-After-Ms: 1\r\nIdempotency-Refusal: in-progress\r\n\r\n"
            + PROBLEM;

    private static final String NO_MONEY =
            "HTTP/1.1 402 Payment Required\r\nContent-Type: text/plain\r\n" + "Content-Length: 8\r\n\r\nno money";

    private static final String NO_MONEY_IN_CHUNKS = """
            HTTP/1.1 402 Payment Required\r
            Content-Type: text/plain\r
            Transfer-Encoding: chunked\r
            Date: Sun, 22 Nov 2026 02:00:00 GMT\r
            \r
            8\r
            no money\r
            0\r
            \r
            """;

    /**
     * @param lost requests before it that get no response
     * @param broken the response that is cut
     * @param last the response to every later request
     * @param end what the caller sees, wherever it was cut
     */
    record Scenario(String name, int lost, String broken, String last, Predicate<Object> end) {
        @Override
        public String toString() {
            return name;
        }

        /** The asynchronous Apache HttpClient leaves it to its caller. */
        boolean isCompressed() {
            return broken.contains("gzip");
        }

        /** What a reader gets of it, or of the response to the attempt after it. */
        String result() {
            return last.equals(NO_MONEY) ? "402 no money" : "201 " + RESULT;
        }

        String response(int request, int length) {
            if (request <= lost) {
                return "";
            }
            return request == lost + 1 ? broken.substring(0, length) : last;
        }
    }

    private static final Predicate<Object> IS_RESULT = RESULT::equals;

    private static boolean isNoMoney(Object end) {
        return end instanceof FeignException e
                && !(end instanceof OutcomeUnknown)
                && e.status() == 402
                && e.contentUTF8().equals("no money");
    }

    static final List<Scenario> SCENARIOS = List.of(
            new Scenario("success", 0, CREATED, REPLAYED, IS_RESULT),
            new Scenario("success in chunks", 0, CREATED_IN_CHUNKS, REPLAYED, IS_RESULT),
            new Scenario("success, compressed", 0, compressed(RESULT), REPLAYED, IS_RESULT),
            new Scenario("refusal while in doubt", 1, IN_PROGRESS, REPLAYED, IS_RESULT),
            new Scenario("refusal while in doubt, marked last", 1, IN_PROGRESS_LAST, REPLAYED, IS_RESULT),
            new Scenario("business failure", 0, NO_MONEY, NO_MONEY, InterruptedResponsesIT::isNoMoney),
            new Scenario(
                    "business failure in chunks", 0, NO_MONEY_IN_CHUNKS, NO_MONEY, InterruptedResponsesIT::isNoMoney));

    /** Where a response is cut. */
    enum Cut {
        /** Around and within each line end, behind the name of each header, and within the status and the body. */
        AT_EACH_LINE,
        ANYWHERE;

        /** The lengths of what is left of it, up to the whole. */
        IntStream of(String response) {
            return IntStream.rangeClosed(0, response.length())
                    .filter(length -> this == ANYWHERE || isAtALine(response, length));
        }

        private static boolean isAtALine(String response, int length) {
            int body = response.indexOf("\r\n\r\n") + 4;
            return length == 0
                    || length == response.length()
                    || "\r\n".indexOf(response.charAt(length - 1)) >= 0
                    || "\r\n".indexOf(response.charAt(length)) >= 0
                    || (length < body && response.startsWith(": ", length - 2))
                    || length == "HTTP/1.1 20".length()
                    || length == (body + response.length()) / 2;
        }
    }

    /** @param reset the connection is reset, and not just closed */
    private record Case(FeignHttpClient client, Scenario scenario, Cut cut, boolean reset) {
        static Stream<Case> all(Cut cut, boolean reset) {
            return Stream.of(FeignHttpClient.values())
                    .filter(client -> !client.isAsync() || !client.reportsCutHeaders())
                    .flatMap(client -> SCENARIOS.stream().map(scenario -> new Case(client, scenario, cut, reset)))
                    .filter(one -> one.client != FeignHttpClient.ASYNC_HC5 || !one.scenario.isCompressed());
        }

        /** The asynchronous Apache HttpClient has failures that are no {@code IOException}, and so no next attempt. */
        boolean isRight(Object end) {
            return scenario.end.test(end) || (client == FeignHttpClient.ASYNC_HC5 && end instanceof OutcomeUnknown);
        }

        @Override
        public String toString() {
            return client + ", " + scenario;
        }
    }

    @TestFactory
    Stream<DynamicTest> responseThatBreaksOffAtALineIsNeverTheWrongEnd() {
        return SideBySide.test(
                Case.all(Cut.AT_EACH_LINE, false).filter(one -> !one.client.isAsync()),
                InterruptedResponsesIT::assertNeverTheWrongEnd);
    }

    @TestFactory
    @Tag("all")
    Stream<DynamicTest> responseThatBreaksOffAnywhereIsNeverTheWrongEnd() {
        return SideBySide.test(Case.all(Cut.ANYWHERE, false), InterruptedResponsesIT::assertNeverTheWrongEnd);
    }

    /** HttpURLConnection then has the headers that it read, and no body. */
    @TestFactory
    @Tag("all")
    Stream<DynamicTest> errorResponseWhoseConnectionIsResetAnywhereIsNeverTheWrongEnd() {
        return SideBySide.test(
                Case.all(Cut.ANYWHERE, true).filter(one -> !one.scenario.broken.startsWith("HTTP/1.1 2")),
                InterruptedResponsesIT::assertNeverTheWrongEnd);
    }

    private static void assertNeverTheWrongEnd(Case one) throws IOException {
        Scenario scenario = one.scenario;
        AtomicInteger length = new AtomicInteger();
        AtomicInteger requests = new AtomicInteger();
        List<String> wrong = new ArrayList<>();
        try (FeignHttpClient.Running running = one.client.start();
                RawServer server = RawServer.start((request, socket) -> {
                    String response = scenario.response(requests.incrementAndGet(), length.get());
                    write(socket, response);
                    if (one.reset && response.length() < scenario.broken.length()) {
                        RawServer.reset(socket);
                    }
                })) {
            Orders orders = orders(running, server);
            for (int cut : one.cut.of(scenario.broken).toArray()) {
                length.set(cut);
                requests.set(0);
                Object end = end(orders);
                if (!one.isRight(end)) {
                    wrong.add(scenario.broken.substring(0, cut).replace("\r\n", "|") + " -> " + end);
                }
            }
        }
        assertThat(wrong).isEmpty();
    }

    /** Its call ends with the headers. The caller reads the body, and sees that it is interrupted. */
    @TestFactory
    Stream<DynamicTest> responseThatBreaksOffAtALineIsNeverTheWrongEndOfOkHttpWithoutFeign() {
        return withoutFeign(Cut.AT_EACH_LINE);
    }

    @TestFactory
    @Tag("all")
    Stream<DynamicTest> responseThatBreaksOffAnywhereIsNeverTheWrongEndOfOkHttpWithoutFeign() {
        return withoutFeign(Cut.ANYWHERE);
    }

    private static Stream<DynamicTest> withoutFeign(Cut cut) {
        return SideBySide.test(SCENARIOS.stream(), scenario -> assertNeverTheWrongEndWithoutFeign(scenario, cut));
    }

    private static void assertNeverTheWrongEndWithoutFeign(Scenario scenario, Cut place) throws IOException {
        String whole = scenario.result();
        int endOfHeaders = scenario.broken.indexOf("\r\n\r\n") + 4;
        AtomicInteger length = new AtomicInteger();
        AtomicInteger requests = new AtomicInteger();
        List<String> wrong = new ArrayList<>();
        OkHttpClient client = IdempotentOkHttp.install(
                        new OkHttpClient.Builder(), config(Duration.ofSeconds(20)), "orders")
                .build();
        try (RawServer server = RawServer.start(
                (request, socket) -> write(socket, scenario.response(requests.incrementAndGet(), length.get())))) {
            okhttp3.Request order = new okhttp3.Request.Builder()
                    .url(server.url())
                    .post(RequestBody.create("x", null))
                    .build();
            for (int cut : place.of(scenario.broken).toArray()) {
                length.set(cut);
                requests.set(0);
                Object end = end(() -> read(client.newCall(order)));
                boolean bodyBroke = cut >= endOfHeaders
                        && cut < scenario.broken.length()
                        && end instanceof IOException
                        && !(end instanceof OutcomeUnknown);
                if (!end.equals(whole) && !bodyBroke) {
                    wrong.add(scenario.broken.substring(0, cut).replace("\r\n", "|") + " -> " + end);
                }
            }
        } finally {
            client.dispatcher().executorService().shutdown();
            client.connectionPool().evictAll();
        }
        assertThat(wrong).isEmpty();
    }

    private static String read(Call call) throws IOException {
        try (Response response = call.execute()) {
            return response.code() + " " + response.body().string();
        }
    }

    private static final String EMPTY = "HTTP/1.1 200 OK\r\n\r\n";
    private static final String EMPTY_CONFLICT = "HTTP/1.1 409 Conflict\r\n\r\n";

    /** HttpURLConnection hands these on as if they were the response. */
    private static final List<String> PROVING_NOTHING = List.of(
            "HTTP/1.1 2",
            "HTTP/1.1 20",
            "HTTP/1.1 200",
            EMPTY,
            EMPTY_CONFLICT,
            "HTTP/1.1 700 Odd\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");

    private record Broken(FeignHttpClient client, String response) {
        static Stream<Broken> all() {
            return Stream.of(FeignHttpClient.values())
                    .flatMap(client -> PROVING_NOTHING.stream().map(response -> new Broken(client, response)))
                    .filter(broken -> !broken.isWhole());
        }

        /** These clients have seen the end of the headers, and of the connection. */
        boolean isWhole() {
            return client.reportsCutHeaders() && List.of(EMPTY, EMPTY_CONFLICT).contains(response);
        }

        @Override
        public String toString() {
            return client + ", " + response.replace("\r\n", "|");
        }
    }

    @TestFactory
    Stream<DynamicTest> responseWhoseFramingProvesNothingLeavesTheOutcomeUnknown() throws IOException {
        // The first call of a client loads classes, which may take longer than the deadline below.
        for (FeignHttpClient client : FeignHttpClient.values()) {
            try (FeignHttpClient.Running running = client.start();
                    RawServer server = RawServer.start((request, socket) -> write(socket, ResponseContract.WHOLE))) {
                assertThat(end(orders(running, server))).isEqualTo("whole");
            }
        }
        return SideBySide.test(Broken.all(), InterruptedResponsesIT::assertUnknown);
    }

    private static void assertUnknown(Broken broken) throws IOException {
        try (FeignHttpClient.Running running = broken.client.start();
                RawServer server = RawServer.start((request, socket) -> write(socket, broken.response))) {
            // One of the clients waits for what follows until the call's deadline.
            assertThat(end(orders(running, server, Duration.ofSeconds(4)))).isInstanceOf(OutcomeUnknown.class);
        }
    }

    /** A void method reads no body, and a Response is read by the caller. */
    @ParameterizedTest
    @EnumSource
    void emptyResponseWithoutAnyFramingIsTheResultOnlyOfClientsThatReportCutHeaders(FeignHttpClient client)
            throws IOException {
        try (FeignHttpClient.Running running = client.start();
                RawServer server = RawServer.start((request, socket) -> write(socket, EMPTY))) {
            Orders orders = orders(running, server);
            if (client.reportsCutHeaders()) {
                assertThat(statusOfRaw(orders)).isEqualTo(200);
            } else {
                assertThat(end(() -> orders.raw("x"))).isInstanceOf(OutcomeUnknown.class);
            }
        }
    }

    /** OkHttp and Apache HttpClient take the headers away that frame it. */
    @ParameterizedTest
    @EnumSource
    void emptyBodyThatWasCompressedIsTheResult(FeignHttpClient client) throws IOException {
        try (FeignHttpClient.Running running = client.start();
                RawServer server = RawServer.start((request, socket) -> write(socket, compressed("")))) {
            assertThat(statusOfRaw(orders(running, server))).isEqualTo(201);
        }
    }

    private static int statusOfRaw(Orders orders) {
        try (feign.Response response = orders.raw("x")) {
            return response.status();
        }
    }

    static String compressed(String body) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(bytes)) {
            out.write(body.getBytes(StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return "HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: " + bytes.size() + "\r\n\r\n"
                + bytes.toString(StandardCharsets.ISO_8859_1);
    }

    @ParameterizedTest
    @EnumSource
    void wholeResponsesWithoutBodyAreTheResult(FeignHttpClient client) throws IOException {
        for (String whole : List.of(
                "HTTP/1.1 204 No Content\r\n\r\n",
                "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) {
            try (FeignHttpClient.Running running = client.start();
                    RawServer server = RawServer.start((request, socket) -> write(socket, whole))) {
                assertThat(end(orders(running, server))).as(whole).isIn("", "null");
            }
        }
    }

    /** Nothing shows whether it was cut; to take it for cut would leave all that such a server does unknown. */
    @ParameterizedTest
    @EnumSource
    void bodyThatOnlyTheEndOfTheConnectionEndsIsTheResult(FeignHttpClient client) throws IOException {
        try (FeignHttpClient.Running running = client.start();
                RawServer server = RawServer.start((request, socket) -> write(socket, "HTTP/1.0 200 OK\r\n\r\nold"))) {
            assertThat(end(orders(running, server))).isEqualTo("old");
        }
    }

    /** The first attempt may have been refused as in progress, and the marker cut. */
    @ParameterizedTest
    @EnumSource
    void conflictWithoutTheMarkerSettlesNoDoubt(FeignHttpClient client) throws IOException {
        String conflict = "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno";
        try (FeignHttpClient.Running running = client.start();
                RawServer server = RawServer.start((request, socket) ->
                        write(socket, request.header("Idempotency-Attempt").equals("1") ? "" : conflict))) {
            assertThat(end(orders(running, server))).isInstanceOf(OutcomeUnknown.class);
        }
        try (FeignHttpClient.Running running = client.start();
                RawServer server = RawServer.start((request, socket) -> write(socket, conflict))) {
            assertThat(end(orders(running, server))).isExactlyInstanceOf(FeignException.Conflict.class);
        }
    }

    static IdempotenceClientConfig config(Duration deadline) {
        return IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(1))
                .maxWait(Duration.ofMillis(2))
                .maxAttempts(4)
                .budget(1_000_000, 1, 1)
                .deadline(deadline)
                .build();
    }

    private static Orders orders(FeignHttpClient.Running running, RawServer server) {
        return orders(running, server, Duration.ofSeconds(20));
    }

    private static Orders orders(FeignHttpClient.Running running, RawServer server, Duration deadline) {
        running.builder().options(new Request.Options(5, TimeUnit.SECONDS, 10, TimeUnit.SECONDS, true));
        return WireMockTestBase.target(WireMockTestBase.install(running.builder(), config(deadline)), server.url());
    }

    static void write(Socket socket, String response) throws IOException {
        socket.getOutputStream().write(response.getBytes(StandardCharsets.ISO_8859_1));
    }

    private static Object end(Orders orders) {
        return end(() -> orders.create("x"));
    }

    static Object end(Callable<Object> call) {
        try {
            return String.valueOf(call.call());
        } catch (Exception e) {
            return e;
        }
    }
}
