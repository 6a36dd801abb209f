package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.spring.internal.IsolatedListeners;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The listeners that are beans, in their order. One that throws does not keep an event from the others.
 *
 * @param beans looked up with the first event, because a listener may itself use a client
 */
record ClientListeners(Supplier<List<IdempotenceClientListener>> beans) implements IdempotenceClientListener {
    private static final Logger LOG = LoggerFactory.getLogger(ClientListeners.class);

    @Override
    public void onCall(IdempotenceClientEvent event) {
        forEach(listener -> listener.onCall(event));
    }

    @Override
    public void onAttempt(IdempotenceClientAttemptEvent event) {
        forEach(listener -> listener.onAttempt(event));
    }

    @Override
    public IdempotenceClientListener ofCall(String client, String method) {
        List<IdempotenceClientListener> ofCall = new ArrayList<>();
        forEach(listener -> {
            int own = ofCall.size();
            ofCall.add(listener);
            ofCall.set(own, Objects.requireNonNull(listener.ofCall(client, method), "ofCall returned null"));
        });
        return new ClientListeners(() -> ofCall);
    }

    @Override
    public Runnable enterRequest() {
        List<Runnable> leave = new ArrayList<>();
        // The last one that entered leaves first.
        forEach(listener ->
                leave.add(0, Objects.requireNonNull(listener.enterRequest(), "enterRequest returned null")));
        return () -> IsolatedListeners.forEach(leave, Runnable::run, LOG);
    }

    private void forEach(Consumer<IdempotenceClientListener> message) {
        IsolatedListeners.forEach(beans.get(), message, LOG);
    }
}
