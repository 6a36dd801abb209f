package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The listeners that are beans, in their order. One that throws does not keep an event from the others.
 *
 * @param beans looked up with the first event, because a listener may itself use a client
 */
record ClientListeners(Supplier<List<IdempotenceClientListener>> beans) implements IdempotenceClientListener {
    @Override
    public void onCall(IdempotenceClientEvent event) {
        forEach(listener -> listener.onCall(event));
    }

    @Override
    public void onAttempt(IdempotenceAttemptEvent event) {
        forEach(listener -> listener.onAttempt(event));
    }

    private void forEach(Consumer<IdempotenceClientListener> message) {
        RuntimeException failure = null;
        for (IdempotenceClientListener listener : beans.get()) {
            try {
                message.accept(listener);
            } catch (RuntimeException e) {
                failure = add(failure, e);
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    private static RuntimeException add(@Nullable RuntimeException failure, RuntimeException next) {
        if (failure == null) {
            return next;
        }
        failure.addSuppressed(next);
        return failure;
    }
}
