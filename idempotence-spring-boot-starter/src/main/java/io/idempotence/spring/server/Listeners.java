package io.idempotence.spring.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.IdempotenceListener.ReleaseReason;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.spring.internal.IsolatedListeners;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** All listeners of the application. Each gets every event, whatever another one throws. */
record Listeners(List<IdempotenceListener> all) implements IdempotenceListener {
    private static final Logger LOG = LoggerFactory.getLogger(Listeners.class);

    @Override
    public void onEvent(IdempotenceEvent event, IdempotenceId id) {
        each(listener -> listener.onEvent(event, id));
    }

    @Override
    public void onStorage(StorageState state) {
        each(listener -> listener.onStorage(state));
    }

    @Override
    public void onReleased(IdempotenceId id, ReleaseReason reason) {
        each(listener -> listener.onReleased(id, reason));
    }

    @Override
    public void onOverhead(AttemptEnd end, long nanos) {
        each(listener -> listener.onOverhead(end, nanos));
    }

    @Override
    public AttemptListener onAttempt(IdempotenceId id, StorageKey key) {
        List<AttemptListener> listening = new ArrayList<>();
        each(listener -> {
            AttemptListener one = listener.onAttempt(id, key);
            if (one != AttemptListener.IGNORED) {
                listening.add(one);
            }
        });
        return listening.isEmpty() ? AttemptListener.IGNORED : new ListenersOfAttempt(listening);
    }

    private record ListenersOfAttempt(List<AttemptListener> listening) implements AttemptListener {
        @Override
        public Runnable enter() {
            List<Runnable> leave = new ArrayList<>();
            IsolatedListeners.forEach(listening, one -> leave.add(0, one.enter()), LOG);
            return () -> IsolatedListeners.forEach(leave, Runnable::run, LOG);
        }

        @Override
        public void ended(AttemptEnd end, String detail) {
            IsolatedListeners.forEach(listening, one -> one.ended(end, detail), LOG);
        }
    }

    private void each(Consumer<IdempotenceListener> call) {
        IsolatedListeners.forEach(all, call, LOG);
    }
}
