package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.it.wire.SideBySide;
import io.idempotence.it.wire.Yardstick;
import io.idempotence.spring.client.IdempotentRestClient;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.springframework.web.client.RestClient;

/** The deadline of a call, and the interruption of its thread, end an exchange of Spring's {@code RestClient} after its request. */
class RestClientDeadlinesIT {
    private static final Duration DEADLINE = Duration.ofMillis(600);
    private static final Duration MOST = Duration.ofMillis(500);

    private record Case(RestClientFactory factory, ExchangeStage stage) {
        static Stream<Case> all() {
            return Stream.of(RestClientFactory.values())
                    .flatMap(factory -> Stream.of(ExchangeStage.values())
                            .filter(stage -> !stage.isBeforeConnection() && !stage.isOfRequestBody())
                            .map(stage -> new Case(factory, stage)));
        }

        InterruptedCaller call(StalledServer server, Duration deadline) {
            RestClient client = IdempotentRestClient.install(
                            RestClient.builder(),
                            IdempotenceClientConfig.builder()
                                    .deadline(deadline)
                                    .maxAttempts(1)
                                    .build())
                    .requestFactory(factory.create())
                    .build();
            return new InterruptedCaller(() -> client.post()
                    .uri(server.url() + "/orders")
                    .body("x")
                    .retrieve()
                    .body(String.class));
        }

        @Override
        public String toString() {
            return factory + ", " + stage;
        }
    }

    @TestFactory
    Stream<DynamicTest> deadlineEndsTheCallInEveryStage() {
        return SideBySide.test(Case.all(), one -> {
            try (StalledServer server = new StalledServer(one.stage);
                    Yardstick yardstick = new Yardstick()) {
                long began = System.nanoTime();
                InterruptedCaller caller = one.call(server, DEADLINE);
                Exception thrown = caller.thrown();
                assertThat(Duration.ofNanos(System.nanoTime() - began))
                        .isLessThan(DEADLINE.plus(MOST).plus(yardstick.lateness()));
                if (server.received) {
                    assertThat(thrown).isInstanceOf(OutcomeUnknown.class);
                }
            }
        });
    }

    @TestFactory
    Stream<DynamicTest> interruptionEndsTheCallInEveryStage() {
        return SideBySide.test(Case.all(), one -> {
            try (StalledServer server = new StalledServer(one.stage)) {
                InterruptedCaller caller = one.call(server, Duration.ofSeconds(60));
                server.awaitRequest();
                caller.awaitStall();
                caller.interrupt();
                assertThat(caller.thrown()).isInstanceOf(OutcomeUnknown.class);
                assertThat(caller.keptItsFlag()).isTrue();
            }
        });
    }
}
