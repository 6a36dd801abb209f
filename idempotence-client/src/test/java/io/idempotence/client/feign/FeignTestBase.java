package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.Request;
import feign.Target.HardCodedTarget;
import io.idempotence.ClosedPort;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;

/** The base of tests with a server, a Feign client, and the events of its attempts and calls. */
abstract class FeignTestBase {
    final TestServer server = new TestServer();
    final List<IdempotenceClientEvent> events = new CopyOnWriteArrayList<>();
    final List<IdempotenceClientAttemptEvent> attempts = new CopyOnWriteArrayList<>();

    private final IdempotenceClientListener heard = new IdempotenceClientListener() {
        @Override
        public void onCall(IdempotenceClientEvent event) {
            events.add(event);
        }

        @Override
        public void onAttempt(IdempotenceClientAttemptEvent event) {
            attempts.add(event);
        }
    };

    @AfterEach
    void stopServer() {
        server.close();
    }

    /** Short waits, and time enough that only tests about the deadline meet it. */
    IdempotenceClientConfigBuilder fast() {
        return IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(1))
                .maxWait(Duration.ofMillis(5))
                .deadline(Duration.ofSeconds(30))
                .listener(heard);
    }

    /** The first call in a JVM loads classes, which may take longer than a short deadline. */
    void warmUp() {
        orders().create("warm-up");
        forget();
    }

    void forget() {
        server.requests().clear();
        events.clear();
        attempts.clear();
    }

    Orders orders() {
        return orders(fast().build());
    }

    Orders orders(IdempotenceClientConfig config) {
        return orders(config, builder -> builder);
    }

    Orders orders(IdempotenceClientConfig config, UnaryOperator<Feign.Builder> before) {
        return target(IdempotentFeign.install(before.apply(Feign.builder()), config));
    }

    Orders target(Feign.Builder builder) {
        return builder.target(new HardCodedTarget<>(Orders.class, "orders", server.url()));
    }

    /** A client whose connections are refused. */
    static Orders refused(IdempotenceClientConfig config) {
        return refused(config, builder -> builder);
    }

    static Orders refused(IdempotenceClientConfig config, UnaryOperator<Feign.Builder> before) {
        return IdempotentFeign.install(before.apply(Feign.builder()), config)
                .target(new HardCodedTarget<>(Orders.class, "orders", nobody()));
    }

    /** An address that refuses connections. */
    static String nobody() {
        return ClosedPort.url();
    }

    void assertEnd(IdempotenceClientEvent.Result result, int attempts) {
        assertThat(events).hasSize(1);
        assertThat(events.get(0).result()).isEqualTo(result);
        assertThat(events.get(0).attempts()).isEqualTo(attempts);
    }

    void assertEnd(IdempotenceClientEvent.Result result, int attempts, int requests) {
        assertEnd(result, attempts);
        assertThat(events.get(0).requests()).isEqualTo(requests);
    }

    static Request.Options readTimeout(long millis) {
        return new Request.Options(5, TimeUnit.SECONDS, millis, TimeUnit.MILLISECONDS, true);
    }
}
