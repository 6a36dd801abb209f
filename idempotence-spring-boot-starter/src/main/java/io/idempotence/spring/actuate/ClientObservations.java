package io.idempotence.spring.actuate;

import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The listener that observes each logical call of the client half, from its first attempt to its end. Attempts are events of the
 * observation. What an HTTP client observes of its requests is nested in it. A trace never gets the ID.
 *
 * <p>A client may be any host, and each name makes meters of its own. Beyond 1,000 clients and methods, {@code other} takes their place in
 * tags, as in the meters of the client half.
 */
final class ClientObservations implements IdempotenceClientListener {
    static final String NAME = "idempotence.client.call";

    private static final int MOST = 1_000;
    private static final Tags OTHER = new Tags("other", "other");

    private final ObservationRegistry registry;
    private final Set<Tags> known = ConcurrentHashMap.newKeySet();

    private record Tags(String client, String method) {}

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
        Tags tags = bounded(new Tags(client, method));
        return new OneCall(call.contextualName(client + " " + method)
                .lowCardinalityKeyValue("client", tags.client)
                .lowCardinalityKeyValue("method", tags.method)
                .lowCardinalityKeyValue("result", "none")
                .start());
    }

    private Tags bounded(Tags tags) {
        return known.contains(tags) || (known.size() < MOST && known.add(tags)) ? tags : OTHER;
    }

    private record OneCall(Observation call) implements IdempotenceClientListener {
        @Override
        public Runnable enterRequest() {
            Observation.Scope scope = call.openScope();
            return scope::close;
        }

        @Override
        public void onAttempt(IdempotenceClientAttemptEvent event) {
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
