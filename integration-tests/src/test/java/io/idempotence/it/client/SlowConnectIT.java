package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import feign.Feign;
import feign.RetryableException;
import feign.hc5.ApacheHttp5Client;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.it.wire.TestTls;
import io.idempotence.spring.client.IdempotentRestClient;
import java.net.InetAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.apache.hc.client5.http.DnsResolver;
import org.apache.hc.client5.http.SystemDefaultDnsResolver;
import org.apache.hc.client5.http.classic.ExecRuntime;
import org.apache.hc.client5.http.config.TlsConfig;
import org.apache.hc.client5.http.impl.ChainElement;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.BasicHttpClientConnectionManager;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.io.HttpClientConnectionManager;
import org.apache.hc.client5.http.ssl.DefaultClientTlsStrategy;
import org.apache.hc.client5.http.ssl.NoopHostnameVerifier;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.http.config.RegistryBuilder;
import org.apache.hc.core5.util.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/**
 * Deadlines that pass while Apache HttpClient connects. It forgot the connection of a request that was cancelled before it had a socket, or
 * whose host has a further address, and the calls ended with the timeout of the TLS handshake, 3 minutes by default.
 */
class SlowConnectIT {
    private static final Duration HANDSHAKE = Duration.ofSeconds(60);
    private static final IdempotenceClientConfig ONE_ATTEMPT = IdempotenceClientConfig.builder()
            .deadline(Duration.ofSeconds(1))
            .maxAttempts(1)
            .build();

    private final AtomicReference<ExecRuntime> exchange = new AtomicReference<>();

    enum Caller {
        FEIGN(RetryableException.class) {
            @Override
            void call(CloseableHttpClient http, String url) {
                WireMockTestBase.target(
                                WireMockTestBase.install(
                                        Feign.builder().client(new ApacheHttp5Client(http)), ONE_ATTEMPT),
                                url)
                        .create("tea");
            }
        },
        REST_CLIENT(ResourceAccessException.class) {
            @Override
            void call(CloseableHttpClient http, String url) {
                IdempotentRestClient.install(RestClient.builder(), ONE_ATTEMPT)
                        .requestFactory(new HttpComponentsClientHttpRequestFactory(http))
                        .build()
                        .post()
                        .uri(url + "/orders")
                        .body("tea")
                        .retrieve()
                        .toBodilessEntity();
            }
        };

        private final Class<? extends Exception> notSent;

        Caller(Class<? extends Exception> notSent) {
            this.notSent = notSent;
        }

        abstract void call(CloseableHttpClient http, String url);
    }

    @ParameterizedTest
    @EnumSource
    void deadlineThatPassesBeforeThereIsASocketEndsTheCall(Caller caller) throws Exception {
        assertEnds(caller, pool(this::late));
    }

    /** It is not of the usual pool, so nothing is known of it until it has a socket. */
    @ParameterizedTest
    @EnumSource
    void deadlineThatPassesBeforeTheOnlyConnectionHasASocketEndsTheCall(Caller caller) throws Exception {
        BasicHttpClientConnectionManager only = BasicHttpClientConnectionManager.create(
                null,
                resolver(this::late),
                RegistryBuilder.<TlsSocketStrategy>create()
                        .register("https", tls())
                        .build(),
                null);
        only.setTlsConfig(handshake());
        assertEnds(caller, only);
    }

    private InetAddress[] late() {
        await().until(() -> exchange.get().isExecutionAborted());
        return addresses(1);
    }

    @ParameterizedTest
    @EnumSource
    void deadlineEndsTheCallToAHostOfSeveralAddresses(Caller caller) throws Exception {
        assertEnds(caller, pool(() -> addresses(3)));
    }

    private void assertEnds(Caller caller, HttpClientConnectionManager connections) throws Exception {
        try (StalledServer server = new StalledServer(ExchangeStage.TLS_STALL);
                CloseableHttpClient http = http(connections)) {
            long began = System.nanoTime();
            assertThatThrownBy(() -> caller.call(http, server.url())).isExactlyInstanceOf(caller.notSent);
            assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(HANDSHAKE.dividedBy(2));
        }
    }

    private CloseableHttpClient http(HttpClientConnectionManager connections) {
        return HttpClients.custom()
                .disableAutomaticRetries()
                .setConnectionManager(connections)
                .addExecInterceptorBefore(ChainElement.CONNECT.name(), "exchange", (request, scope, chain) -> {
                    exchange.set(scope.execRuntime);
                    return chain.proceed(request, scope);
                })
                .build();
    }

    private static HttpClientConnectionManager pool(Supplier<InetAddress[]> lookup) {
        return PoolingHttpClientConnectionManagerBuilder.create()
                .setDnsResolver(resolver(lookup))
                .setTlsSocketStrategy(tls())
                .setDefaultTlsConfig(handshake())
                .build();
    }

    private static DnsResolver resolver(Supplier<InetAddress[]> lookup) {
        return new SystemDefaultDnsResolver() {
            @Override
            public InetAddress[] resolve(String host) {
                return lookup.get();
            }
        };
    }

    private static TlsSocketStrategy tls() {
        return new DefaultClientTlsStrategy(TestTls.context(), NoopHostnameVerifier.INSTANCE);
    }

    private static TlsConfig handshake() {
        return TlsConfig.custom().setHandshakeTimeout(Timeout.of(HANDSHAKE)).build();
    }

    private static InetAddress[] addresses(int count) {
        InetAddress[] addresses = new InetAddress[count];
        Arrays.fill(addresses, InetAddress.getLoopbackAddress());
        return addresses;
    }
}
