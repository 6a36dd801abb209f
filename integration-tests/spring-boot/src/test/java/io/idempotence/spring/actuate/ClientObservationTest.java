package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.RequestLine;
import feign.Response;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import io.micrometer.common.KeyValue;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What a trace shows of the consumer. */
class ClientObservationTest {
    private final List<Observation.Context> calls = new ArrayList<>();
    private final List<String> events = new ArrayList<>();
    private final ObservationRegistry registry = ObservationRegistry.create();

    interface Orders {
        @RequestLine("POST /orders")
        String create(String order);
    }

    ClientObservationTest() {
        registry.observationConfig().observationHandler(new ObservationHandler<>() {
            @Override
            public void onEvent(Observation.Event event, Observation.Context context) {
                events.add(event.getContextualName());
            }

            @Override
            public void onStop(Observation.Context context) {
                calls.add(context);
            }

            @Override
            public boolean supportsContext(Observation.Context context) {
                return true;
            }
        });
    }

    @Test
    void aCallIsOneSpanWithItsAttemptsAsEventsAndItsRequestsWithin() {
        AtomicInteger requests = new AtomicInteger();
        List<String> parents = new ArrayList<>();
        List<String> ids = new ArrayList<>();
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .listener(new ClientObservations(registry))
                .waitBound(Duration.ofMillis(1))
                .build();
        Orders orders = IdempotentFeign.install(
                        Feign.builder().client((request, options) -> {
                            parents.add(registry.getCurrentObservation()
                                    .getContext()
                                    .getName());
                            ids.addAll(request.headers().get("Idempotency-Key"));
                            return Response.builder()
                                    .status(requests.incrementAndGet() == 1 ? 503 : 200)
                                    .request(request)
                                    .body("created", StandardCharsets.UTF_8)
                                    .build();
                        }),
                        config)
                .target(Orders.class, "http://orders");

        assertThat(Observation.createNotStarted("page", registry).observe(() -> orders.create("x")))
                .isEqualTo("created");

        Observation.Context call = calls.get(0);
        assertThat(call.getContextualName()).isEqualTo("http://orders Orders#create(String)");
        assertThat(call.getParentObservation().getContextView().getName()).isEqualTo("page");
        assertThat(call.getLowCardinalityKeyValue("result").getValue()).isEqualTo("succeeded");
        assertThat(events).containsExactly("attempt 1: retryable, status 503", "attempt 2: succeeded, status 200");
        assertThat(parents).containsExactly(ClientObservations.NAME, ClientObservations.NAME);
        assertThat(call.getAllKeyValues().stream().map(KeyValue::getValue)).noneMatch(ids.get(0)::contains);
        assertThat(registry.getCurrentObservation()).isNull();
    }
}
