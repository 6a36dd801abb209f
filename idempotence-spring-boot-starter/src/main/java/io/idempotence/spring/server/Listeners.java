package io.idempotence.spring.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.ReleaseReason;
import java.util.List;
import java.util.function.Consumer;

/** All listeners of the application. Each gets every event, whatever another one throws. */
record Listeners(List<IdempotenceListener> all) implements IdempotenceListener {
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
    public void onOverhead(Outcome outcome, long nanos) {
        each(listener -> listener.onOverhead(outcome, nanos));
    }

    /** @throws RuntimeException the first one that a listener threw; the framework logs it */
    private void each(Consumer<IdempotenceListener> call) {
        RuntimeException first = null;
        for (IdempotenceListener listener : all) {
            try {
                call.accept(listener);
            } catch (RuntimeException e) {
                if (first == null) {
                    first = e;
                } else {
                    first.addSuppressed(e);
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
