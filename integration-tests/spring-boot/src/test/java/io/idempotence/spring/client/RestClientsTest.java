package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RequestRefused;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.http.protocol.BasicHttpContext;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.SpringVersion;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/** {@code RestClient} and {@code RestTemplate} of an application that has the starter. */
class RestClientsTest extends OrdersConsumer {
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(OrdersConsumer.Events.class)
    static class Application {}

    @BeforeAll
    static void start() {
        application = run(
                Application.class,
                "idempotence.client.rest-clients=all",
                "idempotence.client.clients.short.deadline=2s");
    }

    static Stream<Named<ClientHttpRequestFactory>> factories() {
        return Stream.of(
                Named.of("JDK", jdk()),
                Named.of("HttpURLConnection", new SimpleClientHttpRequestFactory()),
                Named.of(
                        "HttpComponents",
                        new HttpComponentsClientHttpRequestFactory(
                                HttpClients.custom().disableAutomaticRetries().build())));
    }

    /** As Boot configures it. */
    private static ClientHttpRequestFactory jdk() {
        return new JdkClientHttpRequestFactory(HttpClient.newBuilder()
                .followRedirects(HttpClient.Redirect.NORMAL)
                .build());
    }

    /** A client of Boot's builder. */
    private static RestClient client(ClientHttpRequestFactory factory, ClientHttpRequestInterceptor... others) {
        return application
                .getBean(RestClient.Builder.class)
                .requestFactory(factory)
                .requestInterceptors(all -> all.addAll(List.of(others)))
                .baseUrl(proxy.url())
                .build();
    }

    private static String order(RestClient client) {
        return client.post().uri("/orders").body("tea").retrieve().body(String.class);
    }

    private static void assertOneId(int requests) {
        List<String> ids = proxy.headers("Idempotency-Key");
        assertThat(ids).hasSize(requests).doesNotContain("-");
        assertThat(ids.stream().distinct()).hasSize(1);
    }

    private static void assertEndsAtTheDeadline(RestClient client) {
        // The first request of a client may take as long as the deadline.
        order(client);
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            long before = System.nanoTime();
            assertThatThrownBy(() -> client.post()
                            .uri("/orders")
                            .attribute(IdempotentRestClient.CLIENT, "short")
                            .body("tea")
                            .retrieve()
                            .body(String.class))
                    .isInstanceOf(OutcomeUnknown.class);
            assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(Duration.ofSeconds(30));
        } finally {
            held.countDown();
        }
    }

    /** An address that refuses connections. */
    private static String nobody() throws IOException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return "http://127.0.0.1:" + free.getLocalPort();
        }
    }

    @ParameterizedTest
    @MethodSource("factories")
    void lostResponseIsAskedForAgainAndTheOrderIsExecutedOnce(ClientHttpRequestFactory factory) {
        proxy.loseResponses(2);
        assertThat(order(client(factory))).isEqualTo("order 1: tea");
        assertThat(provider.executions()).hasValue(1);
        assertOneId(3);
        assertThat(proxy.headers("Idempotency-Attempt")).containsExactly("1", "2", "3");
        assertThat(proxy.headers("Prefer")).containsOnly("wait=5");
        assertThat(events()).singleElement().satisfies(event -> {
            assertThat(event.client()).isEqualTo("127.0.0.1:" + proxy.port());
            assertThat(event.method()).isEqualTo("POST");
            assertThat(event.result()).isEqualTo(IdempotenceClientEvent.Result.REPLAYED);
        });
    }

    /** A caller of Spring gets a whole body or none, and cannot ask again by himself under the same ID. */
    @ParameterizedTest
    @MethodSource("factories")
    void responseThatIsCutInItsBodyIsAskedForAgain(ClientHttpRequestFactory factory) {
        proxy.cutResponses(1);
        assertThat(order(client(factory))).isEqualTo("order 1: tea");
        assertThat(provider.executions()).hasValue(1);
        assertOneId(2);
    }

    /** Each factory is ended through internals of Spring, which differ between its versions. */
    @ParameterizedTest
    @MethodSource("factories")
    void attemptThatHangsEndsAtTheDeadline(ClientHttpRequestFactory factory) {
        assertEndsAtTheDeadline(client(factory));
    }

    /** On Spring 6, a second run of the rest of a chain skips the interceptors. */
    @ParameterizedTest
    @MethodSource("factories")
    void interceptorsBehindSeeEachAttemptWithItsId(ClientHttpRequestFactory factory) {
        proxy.loseResponses(1);
        RestClient client = client(factory, (request, body, execution) -> {
            request.getHeaders().set("X-Signed", request.getHeaders().getFirst("Idempotency-Key"));
            return execution.execute(request, body);
        });
        assertThat(order(client)).isEqualTo("order 1: tea");
        assertOneId(2);
        assertThat(proxy.headers("X-Signed")).isEqualTo(proxy.headers("Idempotency-Key"));
    }

    /** On Spring 6, a second run of the chain skips the client half. That request had no ID, and on Spring 7 another one. */
    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void requestThatAnInterceptorInFrontSendsAgainKeepsItsId(CapturedOutput output) {
        proxy.loseResponses(4);
        RestClient client = client(jdk())
                .mutate()
                .requestInterceptors(all -> all.add(0, (request, body, execution) -> {
                    while (true) {
                        try {
                            return execution.execute(request, body);
                        } catch (IOException | ResourceAccessException e) {
                            assertThat(proxy.requests()).hasSizeLessThan(5);
                        }
                    }
                }))
                .build();
        assertThat(order(client)).isEqualTo("order 1: tea");
        assertOneId(5);
        assertThat(provider.executions()).hasValue(1);
        order(client);
        boolean skips = SpringVersion.getVersion().startsWith("6.");
        assertThat(output.toString().lines().filter(line -> line.contains("On Spring 6 it must not send")))
                .hasSize(skips ? 1 : 0);
    }

    /** On Spring 6, the order had the ID of the token. */
    @Test
    void tokenThatAnInterceptorInFrontFetchesThroughTheChainIsACallOfItsOwn() {
        RestClient client = client(jdk())
                .mutate()
                .requestInterceptors(all -> all.add(0, (request, body, execution) -> {
                    HttpRequest token = new HttpRequestWrapper(request) {
                        @Override
                        public URI getURI() {
                            return URI.create(proxy.url() + "/plain");
                        }
                    };
                    execution.execute(token, body).close();
                    return execution.execute(request, body);
                }))
                .build();
        assertThat(order(client)).isEqualTo("order 1: tea");
        List<String> ids = proxy.headers("Idempotency-Key");
        assertThat(ids).hasSize(2).doesNotHaveDuplicates();
        boolean skips = SpringVersion.getVersion().startsWith("6.");
        assertThat(ids.get(1).equals("-")).isEqualTo(skips);
    }

    @Test
    void interceptorThatThrowsBeforeSendingLeavesNoDoubt() {
        RestClient client = client(jdk(), (request, body, execution) -> {
            throw new IllegalStateException("no token");
        });
        assertThatThrownBy(() -> order(client))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("no token");
        assertThat(proxy.requests()).isEmpty();
    }

    /** One that measures, signs or routes what it sends. */
    @Test
    void clientThatWrapsTheOneOfTheJdkIsNotReplaced() {
        WrappingHttpClient wrapping = new WrappingHttpClient();
        proxy.loseResponses(1);
        RestClient client = client(new JdkClientHttpRequestFactory(wrapping));
        assertThat(order(client)).isEqualTo("order 1: tea");
        assertOneId(2);
        assertThat(wrapping.requests).hasValue(2);
        assertEndsAtTheDeadline(client);
    }

    /** It may have sent a request before the one that failed. */
    @Test
    void clientThatWrapsTheOneOfTheJdkIsInDoubtAfterARefusedConnection() throws IOException {
        RestClient client = client(new JdkClientHttpRequestFactory(new WrappingHttpClient()))
                .mutate()
                .baseUrl(nobody())
                .build();
        assertThatThrownBy(() -> order(client)).isInstanceOf(OutcomeUnknown.class);
    }

    /** The response that was in the context before seemed to be one to a request that HttpClient then sent again. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void responseOfAnEarlierCallInASharedContextLeavesNoDoubt(boolean ofHttpClient) throws IOException {
        HttpContext shared = ofHttpClient ? HttpClientContext.create() : new BasicHttpContext();
        HttpComponentsClientHttpRequestFactory factory = new HttpComponentsClientHttpRequestFactory(
                HttpClients.custom().disableAutomaticRetries().build());
        factory.setHttpContextFactory((method, uri) -> shared);
        RestClient client = client(factory);
        order(client);
        RestClient toNobody = client.mutate().baseUrl(nobody()).build();
        assertThatThrownBy(() -> order(toNobody))
                .isInstanceOf(ResourceAccessException.class)
                .isNotInstanceOf(OutcomeUnknown.class);
    }

    @Test
    void refusalIsAnExceptionOfItsOwn() {
        RestClient client = client(jdk());
        IdempotenceId id = new IdempotenceId("one-id-for-two-orders-" + System.nanoTime());
        IdempotenceScope.with(id, () -> order(client));
        assertThatThrownBy(() -> client.post()
                        .uri("/orders")
                        .header("Idempotency-Key", "\"" + id + "\"")
                        .body("coffee")
                        .retrieve()
                        .body(String.class))
                .isInstanceOfSatisfying(RestRequestRefusedException.class, refused -> {
                    assertThat(refused).isInstanceOf(RequestRefused.class);
                    assertThat(refused.refusal()).isEqualTo(Refusal.KEY_REUSED);
                    assertThat(refused.id()).contains(id);
                });
    }

    @Test
    void callWithoutAnIdIsAsBefore() {
        RestClient client = client(jdk());
        client.get().uri("/orders").retrieve().body(String.class);
        client.delete().uri("/orders/7").retrieve().toBodilessEntity();
        client.post()
                .uri("/plain")
                .attribute(IdempotentRestClient.IDEMPOTENT, false)
                .body("tea")
                .retrieve()
                .body(String.class);
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("-", "-", "-");
    }

    @Test
    void deleteCarriesAnIdIfItsAttributeRequiresIt() {
        client(jdk())
                .delete()
                .uri("/orders/7")
                .attribute(IdempotentRestClient.IDEMPOTENT, true)
                .retrieve()
                .toBodilessEntity();
        assertOneId(1);
    }

    @Test
    void restTemplatesHaveTheSame() {
        RestTemplate template = BootTemplates.restTemplate(application);
        proxy.loseResponses(1);
        assertThat(template.postForObject(proxy.url() + "/orders", "tea", String.class))
                .isEqualTo("order 1: tea");
        assertOneId(2);
        assertThat(provider.executions()).hasValue(1);
    }

    @Test
    void installingTwiceHasNoEffect() {
        RestClient client = IdempotentRestClient.install(
                        client(jdk()).mutate(), application.getBean(IdempotenceClientConfig.class))
                .build();
        assertThat(order(client)).isEqualTo("order 1: tea");
        assertOneId(1);
        assertThat(events()).hasSize(1);
    }
}
