package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.Response;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A client below ours that replaces the name of the service by the address of an instance, as Spring Cloud LoadBalancer's does. */
class LoadBalancedIT extends WireMockTestBase {
    private static final String SERVICE = "http://orders";

    private final List<String> chosen = new CopyOnWriteArrayList<>();
    private Iterator<String> instances =
            Stream.generate(() -> instance("127.0.0.1")).iterator();

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(new Balancer(new Client.Default(null, null)));
    }

    private final class Balancer implements Client {
        private final Client delegate;

        Balancer(Client delegate) {
            this.delegate = delegate;
        }

        @Override
        public Response execute(Request request, Request.Options options) throws IOException {
            return delegate.execute(request.url().startsWith(SERVICE + "/") ? toAnInstance(request) : request, options);
        }

        private Request toAnInstance(Request request) {
            chosen.add(instances.next());
            return Request.create(
                    request.httpMethod(),
                    chosen.get(chosen.size() - 1) + request.url().substring(SERVICE.length()),
                    request.headers(),
                    request.body(),
                    request.charset(),
                    request.requestTemplate());
        }
    }

    private static String instance(String host) {
        return "http://" + host + ":" + provider.port();
    }

    private Orders balanced(IdempotenceClientConfigBuilder config) {
        return target(install(feign(), config.build()), SERVICE);
    }

    private static void redirects(int status, String location) {
        provider.stubFor(any(urlEqualTo("/orders"))
                .atPriority(1)
                .willReturn(status(status).withHeader("Location", location)));
    }

    @Test
    void otherInstanceForEachAttemptGetsTheSameId() {
        List<RawRequest> lost = new CopyOnWriteArrayList<>();
        try (RawServer resetting = RawServer.start((request, client) -> {
            lost.add(request);
            RawServer.reset(client);
        })) {
            instances =
                    List.of(nobody(), resetting.url(), instance("127.0.0.1")).iterator();
            assertThat(balanced(fast()).create("x")).isEqualTo(OK);
        }
        assertThat(lost)
                .singleElement()
                .satisfies(
                        request -> assertThat(request.header("Idempotency-Key")).isEqualTo(ids().get(0)));
        assertOneId();
        assertThat(attempts()).containsExactly("3");
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void instancesOfAServiceShareItsBudget() {
        instances = Stream.iterate(
                        instance("127.0.0.1"), last -> instance(last.contains("127") ? "localhost" : "127.0.0.1"))
                .iterator();
        alwaysGet(status(503));
        Orders orders = balanced(fast().maxAttempts(9).budget(10, 5, 1));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertEnd(FAILED, 3);
        assertThat(chosen).hasSize(3);
        assertThatThrownBy(() -> orders.create("y")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(chosen).hasSize(4);
    }

    /** Containers make a Location absolute, with the host that they were asked under. */
    @ParameterizedTest
    @ValueSource(ints = {307, 308})
    void redirectOfAnInstanceToItselfStaysWithTheService(int status) {
        redirects(status, instance("127.0.0.1") + "/other?page=2#part");
        assertThat(balanced(fast()).create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(bodies()).containsExactly("x", "x");
        assertThat(received()).extracting(request -> request.getUrl()).containsExactly("/orders", "/other?page=2");
        assertThat(chosen).hasSize(2);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/other", SERVICE + "/other"})
    void redirectWithinTheServiceKeepsTheId(String location) {
        redirects(307, location);
        assertThat(balanced(fast()).create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(received()).hasSize(2);
        assertThat(chosen).hasSize(2);
    }

    @ParameterizedTest
    @ValueSource(ints = {307, 308})
    void otherOriginBehindALoadBalancerNeverSeesTheCall(int status) {
        redirects(status, instance("localhost") + "/other");
        Orders orders = balanced(fast());
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(received()).hasSize(1);
    }
}
