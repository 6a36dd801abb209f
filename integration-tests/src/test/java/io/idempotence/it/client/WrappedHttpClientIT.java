package io.idempotence.it.client;

import static io.idempotence.it.client.ResendingFeignClientIT.endAfterALostResponse;
import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.hc5.ApacheHttp5Client;
import feign.http2client.Http2Client;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
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

    @Test
    void executedCallOfAJdkClientWhoseSecondSendingIsRefusedIsNotReportedAsNotSent() {
        // Otherwise Feign takes another client.
        Duration connect = Duration.ofMillis(WireMockTestBase.readTimeout(1).connectTimeoutMillis());
        java.net.http.HttpClient http =
                java.net.http.HttpClient.newBuilder().connectTimeout(connect).build();
        assertThat(endAfterALostResponse(
                        Feign.builder().client(new Http2Client(new FailingOverJdkClient(http))),
                        orders -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class);
    }
}
