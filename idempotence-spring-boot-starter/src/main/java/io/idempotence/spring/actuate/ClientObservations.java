package io.idempotence.spring.actuate;

import io.idempotence.client.IdempotenceAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.Locale;

/**
 * The listener that observes each logical call of the client half, from its first attempt to its end. Its attempts are events. What an
 * HTTP client observes of its requests is within the call. A trace never gets the ID.
 */
final class ClientObservations implements IdempotenceClientListener {
    static final String NAME = "idempotence.client.call";

    private final ObservationRegistry registry;

    ClientObservations(ObservationRegistry registry) {
        this.registry = registry;
    }

    @Override
    public void onCall(IdempotenceClientEvent event) {
        // A call without an attempt, which has nothing to observe.
    }

    @Override
    public IdempotenceClientListener ofCall(String client, String method) {
        Observation call = Observation.createNotStarted(NAME, registry);
        if (call.isNoop()) {
            return this;
        }
        return new OneCall(call.contextualName(client + " " + method)
                .lowCardinalityKeyValue("client", client)
                .lowCardinalityKeyValue("method", method)
                .lowCardinalityKeyValue("result", "none")
                .start());
    }

    private record OneCall(Observation call) implements IdempotenceClientListener {
        @Override
        public Runnable enterRequest() {
            Observation.Scope scope = call.openScope();
            return scope::close;
        }

        @Override
        public void onAttempt(IdempotenceAttemptEvent event) {
            String outcome = lower(event.outcome());
            String status =
                    event.status().isEmpty() ? "" : ", status " + event.status().getAsInt();
            call.event(
                    Observation.Event.of("attempt." + outcome, "attempt " + event.number() + ": " + outcome + status));
        }

        @Override
        public void onCall(IdempotenceClientEvent event) {
            call.lowCardinalityKeyValue("result", lower(event.result()))
                    .highCardinalityKeyValue("idempotence.attempts", Integer.toString(event.attempts()))
                    .stop();
        }

        private static String lower(Enum<?> value) {
            return value.name().toLowerCase(Locale.ROOT);
        }
    }
}
