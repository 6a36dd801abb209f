package io.idempotence.spring.actuate;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.storage.StorageKey;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.Locale;

/**
 * The listener that observes each attempt of the server half, from before its claim until its completion is recorded. A trace gets the
 * key of the record, with which operators find it, and never the ID.
 */
final class ServerObservations implements IdempotenceListener {
    static final String NAME = "idempotence.server.attempt";

    private final ObservationRegistry registry;

    ServerObservations(ObservationRegistry registry) {
        this.registry = registry;
    }

    @Override
    public void onEvent(IdempotenceEvent event, IdempotenceId id) {
        // The attempt's end has what happened.
    }

    @Override
    public AttemptListener onAttempt(IdempotenceId id, StorageKey key) {
        Observation attempt = Observation.createNotStarted(NAME, registry);
        if (attempt.isNoop()) {
            return AttemptListener.IGNORED;
        }
        attempt.contextualName("idempotence attempt")
                .lowCardinalityKeyValue("outcome", "none")
                .lowCardinalityKeyValue("detail", "none")
                .highCardinalityKeyValue("idempotence.key", key.value())
                .start();
        return new ObservedAttempt(attempt);
    }

    private record ObservedAttempt(Observation attempt) implements AttemptListener {
        /** What the handler observes is within the attempt. */
        @Override
        public Runnable enter() {
            Observation.Scope scope = attempt.openScope();
            return scope::close;
        }

        @Override
        public void ended(AttemptEnd end, String detail) {
            attempt.lowCardinalityKeyValue("outcome", end.name().toLowerCase(Locale.ROOT))
                    .lowCardinalityKeyValue("detail", detail.isEmpty() ? "none" : detail)
                    .stop();
        }
    }
}
