package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Feign;
import feign.RetryableException;
import feign.hc5.ApacheHttp5Client;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.spring.client.IdempotentRestClient;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.impl.ChainElement;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.ManagedHttpClientConnectionFactory;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.io.ManagedHttpClientConnection;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.util.Timeout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/**
 * Requests over Apache HttpClient whose deadline passes before they have a connection. They end as not sent; their outcome was once
 * reported as unknown. With HttpClient's own retries, a request that is aborted before it has a connection still ends as unknown, because they
 * replace the exception.
 */
class AbortedConnectIT extends WireMockTestBase {
    private final HttpClientBuilder http = http(false);

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder();
    }

    private static final IdempotenceClientConfig ONE_ATTEMPT = IdempotenceClientConfig.builder()
            .deadline(Duration.ofSeconds(1))
            .maxAttempts(1)
            .build();

    private static HttpClientBuilder http(boolean withRetries) {
        HttpClientBuilder http = HttpClients.custom();
        return withRetries ? http : http.disableAutomaticRetries();
    }

    private void assertNotSent() throws IOException {
        assertNotSent(http);
    }

    private void assertNotSent(HttpClientBuilder http) throws IOException {
        try (CloseableHttpClient client = http.build()) {
            Orders orders = target(install(Feign.builder().client(new ApacheHttp5Client(client)), ONE_ATTEMPT));
            assertThatThrownBy(() -> orders.create("tea")).isExactlyInstanceOf(RetryableException.class);
        }
        assertThat(provider.getAllServeEvents()).isEmpty();
    }

    /** As on a machine that is late. */
    @Test
    void requestThatIsAbortedBeforeItConnectsIsNotSent() throws Exception {
        http.addExecInterceptorBefore(ChainElement.CONNECT.name(), "late", (request, scope, chain) -> {
            await().until(scope.execRuntime::isExecutionAborted);
            return chain.proceed(request, scope);
        });
        assertNotSent();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void requestThatIsAbortedWhenItHasAConnectionOfThePoolIsNotSent(boolean withRetries) throws Exception {
        AtomicReference<PoolingHttpClientConnectionManager> pool = new AtomicReference<>();
        pool.set(PoolingHttpClientConnectionManagerBuilder.create()
                .setConnectionFactory(socket -> late(
                        ManagedHttpClientConnectionFactory.INSTANCE.createConnection(socket),
                        () -> awaitNoneInUse(pool.get())))
                .build());
        assertNotSent(http(withRetries).setConnectionManager(pool.get()));
    }

    /** HttpClient asks for the second time before it opens the connection. */
    private static ManagedHttpClientConnection late(ManagedHttpClientConnection connection, Runnable wait) {
        Thread caller = Thread.currentThread();
        AtomicInteger asked = new AtomicInteger();
        return (ManagedHttpClientConnection) Proxy.newProxyInstance(
                ManagedHttpClientConnection.class.getClassLoader(),
                new Class<?>[] {ManagedHttpClientConnection.class},
                (proxy, method, args) -> {
                    if (method.getName().equals("isOpen")
                            && Thread.currentThread() == caller
                            && asked.incrementAndGet() == 2) {
                        wait.run();
                    }
                    try {
                        return method.invoke(connection, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void requestThatIsAbortedWhenItHasOpenedItsConnectionIsNotSent(boolean withRetries) throws Exception {
        PoolingHttpClientConnectionManager pool = new PoolingHttpClientConnectionManager();
        assertNotSent(http(withRetries)
                .setConnectionManager(pool)
                .addRequestInterceptorLast((request, entity, context) -> awaitNoneInUse(pool)));
    }

    private static void awaitNoneInUse(PoolingHttpClientConnectionManager pool) {
        await().until(() -> pool.getTotalStats().getLeased() == 0);
    }

    private void takeEveryConnection() throws Exception {
        PoolingHttpClientConnectionManager pool = PoolingHttpClientConnectionManagerBuilder.create()
                .setMaxConnTotal(1)
                .build();
        pool.lease("other", new HttpRoute(new HttpHost("127.0.0.1", provider.port())), null)
                .get(Timeout.ofSeconds(30));
        http.setConnectionManager(pool);
    }

    @Test
    void requestThatIsAbortedWhileItWaitsForAConnectionOfThePoolIsNotSent() throws Exception {
        takeEveryConnection();
        assertNotSent();
    }

    @Test
    void requestOfAsyncFeignThatIsAbortedWhileItWaitsIsNotSent() throws Exception {
        takeEveryConnection();
        try (CloseableHttpClient client = http.build()) {
            Orders orders = target(
                    install(AsyncFeign.builder().client(waitingFor(new ApacheHttp5Client(client))), ONE_ATTEMPT));
            // On a machine that is late, a call may end before the client has reported that it sent nothing.
            await().untilAsserted(() ->
                    assertThatThrownBy(() -> orders.create("tea")).isExactlyInstanceOf(RetryableException.class));
        }
        assertThat(provider.getAllServeEvents()).isEmpty();
    }

    @Test
    void requestOfARestClientThatIsAbortedWhileItWaitsIsNotSent() throws Exception {
        takeEveryConnection();
        try (CloseableHttpClient client = http.build()) {
            RestClient orders = IdempotentRestClient.install(RestClient.builder(), ONE_ATTEMPT)
                    .requestFactory(new HttpComponentsClientHttpRequestFactory(client))
                    .defaultRequest(request -> request.attribute(IdempotentRestClient.CLIENT, "orders"))
                    .build();
            assertThatThrownBy(() -> orders.post()
                            .uri("http://127.0.0.1:" + provider.port() + "/orders")
                            .body("tea")
                            .retrieve()
                            .toBodilessEntity())
                    .isExactlyInstanceOf(ResourceAccessException.class);
        }
    }
}
