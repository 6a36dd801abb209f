package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.RequestLine;
import feign.Response;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.spring.client.IdempotenceClientAutoConfiguration;
import io.idempotence.spring.client.IdempotentRestClient;
import io.micrometer.common.KeyValue;
import io.micrometer.core.instrument.observation.DefaultMeterObservationHandler;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.mock.http.client.MockClientHttpRequest;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.client.RestClient;

/** Tests of what a trace shows of the consumer. */
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
        List<IdempotenceClientEvent> heard = new ArrayList<>();
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceClientAutoConfiguration.class, IdempotenceObservationAutoConfiguration.class))
                .withPropertyValues("idempotence.client.retry.wait=1ms", "idempotence.client.deadline=2m")
                .withBean(ObservationRegistry.class, () -> registry)
                .withBean(IdempotenceClientListener.class, () -> heard::add)
                .run(context -> observe(context.getBean(IdempotenceClientConfig.class)));

        assertThat(heard).extracting(IdempotenceClientEvent::attempts).containsExactly(2);
    }

    /** Each host had meters of its own. */
    @Test
    void theMetersOfAClientThatCallsManyHostsAreBounded() {
        SimpleMeterRegistry meters = new SimpleMeterRegistry();
        registry.observationConfig().observationHandler(new DefaultMeterObservationHandler(meters));
        ClientObservations observations = new ClientObservations(registry);

        for (int i = 0; i < 1_100; i++) {
            observations.ofCall("shop-" + i + ".example", "POST");
        }

        assertThat(meters.getMeters())
                .hasSize(1_001)
                .filteredOn(meter -> "other".equals(meter.getId().getTag("client")))
                .hasSize(1);
    }

    /** Spring begins its observation in front of the interceptors, which send every attempt. */
    @Test
    void theRequestOfARestClientIsOneSpanAroundTheCall() {
        AtomicInteger requests = new AtomicInteger();
        RestClient.Builder orders = RestClient.builder()
                .observationRegistry(registry)
                .requestFactory((uri, method) -> new MockClientHttpRequest(method, uri) {
                    @Override
                    protected ClientHttpResponse executeInternal() {
                        return new MockClientHttpResponse(new byte[0], requests.incrementAndGet() == 1 ? 503 : 200);
                    }
                });
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceClientAutoConfiguration.class, IdempotenceObservationAutoConfiguration.class))
                .withPropertyValues("idempotence.client.retry.wait=1ms", "idempotence.client.deadline=2m")
                .withBean(ObservationRegistry.class, () -> registry)
                .run(context -> IdempotentRestClient.install(orders, context.getBean(IdempotenceClientConfig.class))
                        .build()
                        .post()
                        .uri("http://orders/orders")
                        .retrieve()
                        .toBodilessEntity());

        assertThat(requests).hasValue(2);
        assertThat(calls)
                .extracting(Observation.Context::getName)
                .containsExactly(ClientObservations.NAME, "http.client.requests");
        assertThat(calls.get(0).getParentObservation().getContextView()).isSameAs(calls.get(1));
    }

    private void observe(IdempotenceClientConfig config) {
        AtomicInteger requests = new AtomicInteger();
        List<String> parents = new ArrayList<>();
        List<String> ids = new ArrayList<>();
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
        String id = ids.get(0).replace("\"", "");
        assertThat(call.getAllKeyValues().stream().map(KeyValue::getValue)).noneMatch(value -> value.contains(id));
        assertThat(registry.getCurrentObservation()).isNull();
    }
}
