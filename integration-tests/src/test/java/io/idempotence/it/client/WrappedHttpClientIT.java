package io.idempotence.it.client;

import static io.idempotence.it.client.ResendingFeignClientIT.endAfterALostResponse;
import static org.assertj.core.api.Assertions.assertThat;

import com.github.mizosoft.methanol.Methanol;
import feign.Feign;
import feign.hc5.ApacheHttp5Client;
import feign.http2client.Http2Client;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.apache.hc.client5.http.classic.HttpClient;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.junit.jupiter.api.Test;

/** Feign over a client that wraps Apache HttpClient, or the JDK's, and sends a request again after a failure, for example to another host. */
class WrappedHttpClientIT {
    private static HttpClient failingOver(HttpClient http) {
        return (HttpClient) Proxy.newProxyInstance(
                HttpClient.class.getClassLoader(), new Class<?>[] {HttpClient.class}, (proxy, method, args) -> {
                    try {
                        return method.invoke(http, args);
                    } catch (InvocationTargetException first) {
                        try {
                            return method.invoke(http, args);
                        } catch (InvocationTargetException second) {
                            throw second.getCause();
                        }
                    }
                });
    }

    @Test
    void executedCallWhoseSecondSendingIsRefusedIsNotReportedAsNotSent() throws IOException {
        try (CloseableHttpClient http =
                HttpClients.custom().disableAutomaticRetries().build()) {
            assertThat(endAfterALostResponse(
                            Feign.builder().client(new ApacheHttp5Client(failingOver(http))),
                            orders -> orders.create("x")))
                    .isInstanceOf(OutcomeUnknown.class);
        }
    }

    private static final class Again implements Methanol.Interceptor {
        @Override
        public <T> HttpResponse<T> intercept(HttpRequest request, Chain<T> chain)
                throws IOException, InterruptedException {
            try {
                return chain.forward(request);
            } catch (IOException e) {
                return chain.forward(request);
            }
        }

        @Override
        public <T> CompletableFuture<HttpResponse<T>> interceptAsync(HttpRequest request, Chain<T> chain) {
            return chain.forwardAsync(request);
        }
    }

    @Test
    void executedCallOfAJdkClientWhoseSecondSendingIsRefusedIsNotReportedAsNotSent() {
        // Feign replaces a client whose connect timeout is not its own.
        Duration connect = Duration.ofMillis(WireMockTestBase.readTimeout(1).connectTimeoutMillis());
        Methanol retrying = Methanol.newBuilder()
                .connectTimeout(connect)
                .interceptor(new Again())
                .build();
        assertThat(endAfterALostResponse(
                        Feign.builder().client(new Http2Client(retrying)), orders -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class);
    }
}
