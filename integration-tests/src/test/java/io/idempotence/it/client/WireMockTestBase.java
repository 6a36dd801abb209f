package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.anyRequestedFor;
import static com.github.tomakehurst.wiremock.client.WireMock.anyUrl;
import static com.github.tomakehurst.wiremock.client.WireMock.equalTo;
import static com.github.tomakehurst.wiremock.core.WireMockConfiguration.options;
import static org.assertj.core.api.Assertions.assertThat;

import com.github.tomakehurst.wiremock.WireMockServer;
import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.HttpHeader;
import com.github.tomakehurst.wiremock.stubbing.Scenario;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import feign.AsyncClient;
import feign.AsyncFeign.AsyncBuilder;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.Request;
import feign.Target.HardCodedTarget;
import io.idempotence.ClosedPort;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.feign.IdempotentFeign;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import okhttp3.OkHttpClient;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/**
 * WireMock as the provider, whose journal shows what went over the wire. Responses are tied to the number of the attempt and not to the
 * count of requests where it matters, because HTTP clients repeat requests by themselves.
 */
abstract class WireMockTestBase {
    static final String OK = "ok";

    private static final Pattern GENERATED = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

    /** The generated IDs of earlier tests' calls. A request that such a call gave up at its deadline may arrive after its test. */
    private static final Set<String> EARLIER = ConcurrentHashMap.newKeySet();

    static WireMockServer provider;

    final List<IdempotenceClientEvent> events = new CopyOnWriteArrayList<>();
    final List<IdempotenceClientAttemptEvent> attemptEvents = new CopyOnWriteArrayList<>();
    final OkHttpClient okHttp = new OkHttpClient();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private final IdempotenceClientListener heard = new IdempotenceClientListener() {
        @Override
        public void onCall(IdempotenceClientEvent event) {
            events.add(event);
        }

        @Override
        public void onAttempt(IdempotenceClientAttemptEvent event) {
            attemptEvents.add(event);
        }
    };

    @BeforeAll
    static void startProvider() {
        provider = new WireMockServer(options()
                .bindAddress("127.0.0.1")
                .dynamicPort()
                .dynamicHttpsPort()
                .containerThreads(40)
                .jettyStopTimeout(5_000L));
        provider.start();
    }

    @AfterAll
    static void stopProvider() {
        provider.stop();
    }

    @BeforeEach
    void everythingIsFine() {
        provider.resetAll();
        provider.stubFor(any(anyUrl()).atPriority(10).willReturn(ok()));
    }

    /** Forgets all calls so far. Their IDs must not be used again. */
    final void forget() {
        rememberIds();
        attemptEvents.clear();
        events.clear();
        provider.resetRequests();
    }

    @AfterEach
    void rememberIds() {
        attemptEvents.stream()
                .flatMap(event -> event.id().stream())
                .map(IdempotenceId::value)
                .filter(id -> GENERATED.matcher(id).matches())
                .forEach(EARLIER::add);
    }

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    @AfterEach
    void closeOkHttp() {
        okHttp.dispatcher().executorService().shutdown();
        okHttp.connectionPool().evictAll();
    }

    /** A Feign with the HTTP client that is tested under it. */
    abstract BaseBuilder<?, ?> builder();

    final feign.okhttp.OkHttpClient okHttp() {
        return new feign.okhttp.OkHttpClient(okHttp);
    }

    /** Feign's own client, for which a thread waits where the caller does not. */
    final AsyncClient<Object> waitingClient() {
        return waitingFor(new Client.Default(null, null));
    }

    final AsyncClient<Object> waitingFor(Client client) {
        return new AsyncClient.Default<>(client, threads);
    }

    static ResponseDefinitionBuilder ok() {
        return aResponse().withStatus(200).withBody(OK);
    }

    static ResponseDefinitionBuilder status(int status) {
        return aResponse().withStatus(status).withBody("status " + status);
    }

    static ResponseDefinitionBuilder refusal(String code, int status) {
        return aResponse()
                .withStatus(status)
                .withHeader("Content-Type", "application/problem+json")
                .withHeader("Idempotency-Refusal", code)
                .withBody("{\"status\":" + status + "}");
    }

    /** Attempts 1 to {@code last} get this; a protected call is fine after that. */
    static void attemptsUpTo(int last, ResponseDefinitionBuilder response) {
        for (int attempt = 1; attempt <= last; attempt++) {
            attempt(attempt, response);
        }
    }

    static void attempt(int attempt, ResponseDefinitionBuilder response) {
        provider.stubFor(any(anyUrl())
                .atPriority(1)
                .withHeader("Idempotency-Attempt", equalTo(Integer.toString(attempt)))
                .willReturn(response));
    }

    /** The first requests get these, one each; all is fine after that. */
    static void requestsGet(ResponseDefinitionBuilder... responses) {
        String state = Scenario.STARTED;
        for (int i = 0; i < responses.length; i++) {
            String next = "after " + (i + 1);
            provider.stubFor(any(anyUrl())
                    .atPriority(1)
                    .inScenario("in turn")
                    .whenScenarioStateIs(state)
                    .willReturn(responses[i])
                    .willSetStateTo(next));
            state = next;
        }
    }

    static void alwaysGet(ResponseDefinitionBuilder response) {
        provider.stubFor(any(anyUrl()).atPriority(1).willReturn(response));
    }

    /** Short waits, and time enough that only tests about the deadline meet it. */
    IdempotenceClientConfigBuilder fast() {
        return IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(1))
                .maxWait(Duration.ofMillis(5))
                .deadline(Duration.ofSeconds(30))
                .listener(heard);
    }

    Orders orders() {
        return orders(fast());
    }

    Orders orders(IdempotenceClientConfigBuilder config) {
        return orders(config, builder -> builder);
    }

    Orders orders(IdempotenceClientConfigBuilder config, UnaryOperator<BaseBuilder<?, ?>> before) {
        return target(install(before.apply(feign()), config.build()));
    }

    Orders orders(UnaryOperator<BaseBuilder<?, ?>> before) {
        return orders(fast(), before);
    }

    final BaseBuilder<?, ?> feign() {
        return builder().options(readTimeout(20_000));
    }

    static BaseBuilder<?, ?> install(BaseBuilder<?, ?> builder, IdempotenceClientConfig config) {
        return builder instanceof AsyncBuilder<?> async
                ? IdempotentFeign.install(async, config)
                : IdempotentFeign.install((Feign.Builder) builder, config);
    }

    static Request.Options readTimeout(long millis) {
        return new Request.Options(5, TimeUnit.SECONDS, millis, TimeUnit.MILLISECONDS, true);
    }

    static Orders target(BaseBuilder<?, ?> builder) {
        return target(builder, "http://127.0.0.1:" + provider.port());
    }

    static Orders target(BaseBuilder<?, ?> builder, String url) {
        return builder instanceof AsyncBuilder<?> async
                ? AsyncOrders.waitingFor(async.target(new HardCodedTarget<>(AsyncOrders.class, "orders", url)))
                : ((Feign.Builder) builder).target(new HardCodedTarget<>(Orders.class, "orders", url));
    }

    /** An address that refuses connections. */
    static String nobody() {
        return ClosedPort.url();
    }

    /** What the provider received from the calls of this test, in order. */
    static List<LoggedRequest> received() {
        return provider.findAll(anyRequestedFor(anyUrl())).stream()
                .filter(request ->
                        !EARLIER.contains(header(request, "Idempotency-Key").replace("\"", "")))
                .toList();
    }

    /** The line of each request's ID, or "" where it has none. */
    static List<String> ids() {
        return received().stream()
                .map(request -> header(request, "Idempotency-Key"))
                .toList();
    }

    static List<String> bodies() {
        return received().stream().map(LoggedRequest::getBodyAsString).toList();
    }

    /** The attempt numbers that went over the wire, each once. */
    static List<String> attempts() {
        return received().stream()
                .map(request -> header(request, "Idempotency-Attempt"))
                .distinct()
                .toList();
    }

    /** The lines of a header, joined; "" if there is none. */
    static String header(LoggedRequest request, String name) {
        HttpHeader header = request.header(name);
        return header.isPresent() ? String.join("|", header.values()) : "";
    }

    /** Every request that arrived carried one and the same ID, once. */
    static void assertOneId() {
        assertThat(ids()).isNotEmpty().allMatch(id -> id.matches("\"[!-~]+\""));
        assertThat(Set.copyOf(ids())).hasSize(1);
    }

    void assertEnd(Result result, int attempts) {
        assertThat(events).hasSize(1);
        assertThat(events.get(0).result()).isEqualTo(result);
        assertThat(events.get(0).attempts()).isEqualTo(attempts);
    }
}
