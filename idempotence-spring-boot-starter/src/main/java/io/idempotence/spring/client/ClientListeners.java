package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The listeners that are beans, in their order. One that throws does not keep an event from the others.
 *
 * @param beans looked up with the first event, because a listener may itself use a client
 */
record ClientListeners(Supplier<List<IdempotenceClientListener>> beans) implements IdempotenceClientListener {
    private static final Logger LOG = LoggerFactory.getLogger(ClientListeners.class);
    private static final String FAILED = "the listener {} failed; the call is not affected";

    @Override
    public void onCall(IdempotenceClientEvent event) {
        forEach(listener -> listener.onCall(event));
    }

    @Override
    public void onAttempt(IdempotenceAttemptEvent event) {
        forEach(listener -> listener.onAttempt(event));
    }

    @Override
    public IdempotenceClientListener ofCall(String client, String method) {
        List<IdempotenceClientListener> ofCall = new ArrayList<>();
        for (IdempotenceClientListener listener : beans.get()) {
            try {
                ofCall.add(listener.ofCall(client, method));
            } catch (RuntimeException e) {
                LOG.warn(FAILED, listener.getClass().getName(), e);
                ofCall.add(listener);
            }
        }
        return new ClientListeners(() -> ofCall);
    }

    @Override
    public Runnable enterRequest() {
        List<Runnable> leave = new ArrayList<>();
        for (IdempotenceClientListener listener : beans.get()) {
            try {
                // The last one that entered leaves first.
                leave.add(0, listener.enterRequest());
            } catch (RuntimeException e) {
                LOG.warn(FAILED, listener.getClass().getName(), e);
            }
        }
        return () -> forEach(leave, Runnable::run);
    }

    private void forEach(Consumer<IdempotenceClientListener> message) {
        forEach(beans.get(), message);
    }

    private static <T> void forEach(List<T> each, Consumer<T> message) {
        RuntimeException failure = null;
        for (T listener : each) {
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
