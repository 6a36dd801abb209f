package io.idempotence.server.redis;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A listener that collects how the storage is reported. Thread-safe. */
final class StorageStates implements IdempotenceListener {
    private final List<StorageState> reported = new CopyOnWriteArrayList<>();

    @Override
    public void onEvent(IdempotenceEvent event, IdempotenceId id) {}

    @Override
    public void onStorage(StorageState state) {
        reported.add(state);
    }

    /** What was reported so far, in order. */
    List<StorageState> reported() {
        return List.copyOf(reported);
    }
}
