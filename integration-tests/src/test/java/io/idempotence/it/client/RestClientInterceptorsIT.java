package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.anyUrl;
import static com.github.tomakehurst.wiremock.client.WireMock.get;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REFUSED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.github.tomakehurst.wiremock.http.Fault;
import feign.BaseBuilder;
import feign.Feign;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.spring.client.IdempotentRestClient;
import io.idempotence.spring.client.RestOutcomeUnknownException;
import io.idempotence.spring.client.RestRequestRefusedException;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.core.SpringVersion;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpRequest;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.HttpServerErrorException;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/** Interceptors of a {@code RestClient} behind the client half. They see each attempt, and may end it in their own way. */
class RestClientInterceptorsIT extends WireMockTestBase {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder();
    }

    private static String order(IdempotenceClientConfigBuilder config, ClientHttpRequestInterceptor behind) {
        return IdempotentRestClient.install(RestClient.builder(), config.build())
                .requestInterceptor(behind)
                .requestFactory(new JdkClientHttpRequestFactory())
                .build()
                .post()
                .uri("http://127.0.0.1:" + provider.port() + "/orders")
                .body("tea")
                .retrieve()
                .body(String.class);
    }

    private static ClientHttpRequestInterceptor failingAfterTheResponse(Exception failure) {
        return (request, body, execution) -> {
            execution.execute(request, body).close();
            if (failure instanceof IOException e) {
                throw e;
            }
            throw (RuntimeException) failure;
        };
    }

    static Stream<Exception> failuresOfAnotherCall() {
        return Stream.of(
                new ConnectException("of another call"),
                new SSLPeerUnverifiedException("of another call"),
                new ResourceAccessException("of another call", new ConnectException()));
    }

    /** As after a call for an audit, which fails. It was that exception, which reads as "nothing was sent". */
    @ParameterizedTest
    @MethodSource("failuresOfAnotherCall")
    void executedCallWhoseInterceptorFailsAfterTheResponseIsUnknown(Exception failure) {
        assertThatThrownBy(() -> order(fast(), failingAfterTheResponse(failure)))
                .isInstanceOf(RestOutcomeUnknownException.class)
                .hasStackTraceContaining("of another call");
        assertThat(received()).hasSize(3);
        assertOneId();
        assertEnd(UNKNOWN, 3);
        forget();
    }

    /** Perhaps executed, and its exception reads as "nothing was sent". */
    @ParameterizedTest
    @ValueSource(ints = {303, 500, 501, 503, 505})
    void callWhoseHandlerAndThenWhoseInterceptorFailedIsUnknown(int status) {
        alwaysGet(status(status));
        failuresOfAnotherCall().forEach(this::executedCallWhoseInterceptorFailsAfterTheResponseIsUnknown);
    }

    /** Executed: by an earlier attempt. */
    @ParameterizedTest
    @ValueSource(ints = {303, 500})
    void callWhoseInterceptorFailsAfterAReplayIsUnknown(int status) {
        alwaysGet(status(status).withHeader("Idempotent-Replayed", "true"));
        failuresOfAnotherCall().forEach(this::executedCallWhoseInterceptorFailsAfterTheResponseIsUnknown);
    }

    /** Not executed, and never retried. */
    @ParameterizedTest
    @MethodSource("failuresOfAnotherCall")
    void interceptorThatFailsAfterTheOperationRefusedIsTheEnd(Exception failure) {
        alwaysGet(status(422));
        assertThatThrownBy(() -> order(fast(), failingAfterTheResponse(failure)))
                .isInstanceOf(ResourceAccessException.class)
                .isNotInstanceOf(OutcomeUnknown.class);
        assertEnd(FAILED, 1);
    }

    @Test
    void refusalAfterWhichAnInterceptorFailsIsARefusal() {
        alwaysGet(refusal("storage-unavailable", 503));
        assertThatThrownBy(() -> order(fast(), failingAfterTheResponse(new ConnectException("of another call"))))
                .isInstanceOf(RestRequestRefusedException.class);
        assertEnd(REFUSED, 3);
    }

    /** It was the interceptor's exception. */
    @Test
    void interceptorThatFailsAfterAFailureOfTheHandlerIsNotTheEnd() {
        alwaysGet(status(500));
        AtomicInteger attempts = new AtomicInteger();
        assertThatThrownBy(() -> order(fast(), (request, body, execution) -> {
                    if (attempts.incrementAndGet() > 1) {
                        throw new IllegalStateException("no token");
                    }
                    return execution.execute(request, body);
                }))
                .isInstanceOf(HttpServerErrorException.InternalServerError.class);
        assertEnd(FAILED, 2);
    }

    /** As an interceptor does that asks until a result is there. */
    @Test
    void executedCallWhoseInterceptorThenReachesNobodyIsUnknown() {
        assertThatThrownBy(() -> order(fast().maxAttempts(1), (request, body, execution) -> {
                    execution.execute(request, body).close();
                    return execution.execute(at(nobody(), request), body);
                }))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @ParameterizedTest
    @ValueSource(ints = {303, 503})
    void callWhoseHandlerRedirectedOrFailedAndWhoseInterceptorThenReachesNobodyIsUnknown(int status) {
        alwaysGet(status(status));
        executedCallWhoseInterceptorThenReachesNobodyIsUnknown();
    }

    /** As where this library follows no redirects. The target of a 303 says nothing about the operation. */
    @Test
    void executedCallWhoseInterceptorFollowsTheRedirectItselfIsUnknown() {
        alwaysGet(status(303));
        provider.stubFor(
                get(urlEqualTo("/orders")).atPriority(1).willReturn(aResponse().withStatus(401)));
        assertThatThrownBy(() -> order(fast().maxAttempts(1), (request, body, execution) -> {
                    execution.execute(request, body).close();
                    return execution.execute(
                            new HttpRequestWrapper(request) {
                                @Override
                                public HttpMethod getMethod() {
                                    return HttpMethod.GET;
                                }
                            },
                            new byte[0]);
                }))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(received()).hasSize(2);
    }

    /** A client whose interceptor in front of the client half sends each request first to {@code first}, and then where it belongs. */
    private RestClient alsoTo(String first, Class<? extends Exception> failure) {
        return IdempotentRestClient.install(RestClient.builder(), fast().build())
                .requestInterceptors(all -> all.add(0, (request, body, execution) -> {
                    if (failure == null) {
                        execution.execute(at(first, request), body).close();
                    } else {
                        assertThatThrownBy(() -> execution.execute(at(first, request), body))
                                .isInstanceOf(failure);
                    }
                    return execution.execute(request, body);
                }))
                .requestFactory(new JdkClientHttpRequestFactory())
                .build();
    }

    private static String url(String pathAndQuery) {
        return "http://127.0.0.1:" + provider.port() + pathAndQuery;
    }

    private static void order(RestClient client, String url) {
        client.post().uri(url).body("tea").retrieve().toBodilessEntity();
    }

    @Test
    void queryAndHostMakeNoOtherCall() {
        order(alsoTo("http://localhost:" + provider.port() + "/orders?try=1", null), url("/orders"));
        assertThat(received()).hasSize(2);
        assertOneId();
    }

    /** An interceptor in front of ours sends past it in Spring 6, the second time. */
    private static void assumeSpring7() {
        assumeThat(SpringVersion.getVersion()).startsWith("7");
    }

    @Test
    void tokenThatIsFetchedThroughTheChainIsACallOfItsOwn() {
        assumeSpring7();
        order(alsoTo(url("/token"), null), url("/orders"));
        assertThat(ids()).hasSize(2).doesNotHaveDuplicates().doesNotContain("");
    }

    /** Nothing left the second time, and that does not undo the first. */
    @Test
    void doubtOfTheFirstSendingIsNotForgotten() {
        assumeSpring7();
        alwaysGet(status(504));
        RestClient client = alsoTo(url("/orders"), RestOutcomeUnknownException.class);
        assertThatThrownBy(() -> order(client, nobody() + "/orders")).isInstanceOf(RestOutcomeUnknownException.class);
        assertThat(ids().stream().distinct()).hasSize(1);
    }

    @Test
    void callInAScopeThatIsSentAgainKeepsTheIdAndTheDoubt() {
        assumeSpring7();
        alwaysGet(status(504));
        RestClient client = alsoTo(url("/orders"), RestOutcomeUnknownException.class);
        assertThatThrownBy(() ->
                        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> order(client, nobody() + "/orders")))
                .isInstanceOf(RestOutcomeUnknownException.class);
        assertThat(ids().stream().distinct()).containsExactly("\"job-1\"");
    }

    @Test
    void callOfAHandlerThatIsSentAgainTakesOneDerivedId() {
        RestClient twice = alsoTo(url("/orders"), null);
        RestClient once = IdempotentRestClient.install(RestClient.builder(), fast().build())
                .build();
        for (RestClient client : List.of(twice, once)) {
            Runnable leave = InboundRequest.of("request-1").enter();
            try {
                order(client, url("/orders"));
                order(client, url("/orders"));
            } finally {
                leave.run();
            }
        }
        List<String> ids = ids();
        assertThat(ids).hasSize(6);
        assertThat(ids.subList(0, 4)).containsExactly(ids.get(4), ids.get(4), ids.get(5), ids.get(5));
    }

    private static HttpRequest at(String url, HttpRequest request) {
        return new HttpRequestWrapper(request) {
            @Override
            public URI getURI() {
                return URI.create(url);
            }
        };
    }

    /** As of a circuit breaker or a limiter. Its response was the end of the call, as if the operation had responded. */
    @Test
    void responseThatAnInterceptorMakesItselfSettlesNoDoubt() {
        AtomicInteger attempts = new AtomicInteger();
        provider.stubFor(any(anyUrl()).willReturn(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER)));
        assertThatThrownBy(() -> order(
                        fast(),
                        (request, body, execution) -> attempts.incrementAndGet() == 1
                                ? execution.execute(request, body)
                                : emptyResponse(503)))
                .isInstanceOf(RestOutcomeUnknownException.class);
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 3);
    }

    @Test
    void errorThatAnInterceptorMakesItselfIsNoSuccess() {
        assertThatThrownBy(() -> order(fast(), (request, body, execution) -> emptyResponse(402)))
                .isInstanceOf(HttpClientErrorException.class);
        assertThat(received()).isEmpty();
        assertEnd(FAILED, 1);
    }

    /** As with an interceptor whose token does not come. */
    @Test
    void requestThatIsReadyAfterTheDeadlineIsNotSent() {
        Duration deadline = Duration.ofMillis(500);
        assertThatThrownBy(() -> order(fast().deadline(deadline), (request, body, execution) -> {
                    long began = System.nanoTime();
                    await().until(() -> System.nanoTime() - began > deadline.toNanos());
                    return execution.execute(request, body);
                }))
                .isInstanceOf(ResourceAccessException.class)
                .isNotInstanceOf(OutcomeUnknown.class);
        assertThat(received()).isEmpty();
        assertEnd(FAILED, 1);
    }

    private static ClientHttpResponse emptyResponse(int status) {
        return new ClientHttpResponse() {
            @Override
            public HttpStatusCode getStatusCode() {
                return HttpStatusCode.valueOf(status);
            }

            @Override
            public String getStatusText() {
                return "";
            }

            @Override
            public HttpHeaders getHeaders() {
                return new HttpHeaders();
            }

            @Override
            public InputStream getBody() {
                return InputStream.nullInputStream();
            }

            @Override
            public void close() {
                // There is no connection.
            }
        };
    }
}
