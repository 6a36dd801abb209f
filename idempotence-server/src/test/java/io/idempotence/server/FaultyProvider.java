package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A fixture with instances of a provider, over a storage whose calls may fail or over the memory behind it, and with the events of all of
 * them. Each test has its own.
 */
final class FaultyProvider implements AfterEachCallback {
    static final IdempotencePolicy SHORT_LEASE = IdempotencePolicy.builder()
            .lease(Duration.ofMillis(250))
            .onAbandoned(OnAbandoned.RE_EXECUTE)
            .build();
    static final IdempotenceId ID = IdempotenceId.of("order-1");
    static final StorageKey KEY = key("order-1");

    final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    final FaultyStorage storage = new FaultyStorage(memory);
    final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    final AtomicInteger runs = new AtomicInteger();

    private final List<Idempotence> open = new ArrayList<>();

    @Override
    public void afterEach(ExtensionContext context) {
        storage.before((call, which) -> {}).after((call, which) -> {});
        open.forEach(Idempotence::close);
    }

    static StorageKey key(String id) {
        return StorageKey.of("default", "", "execute", IdempotenceId.of(id));
    }

    static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    Idempotence over(IdempotenceStorage any, IdempotencePolicy policy) {
        return closeAfterwards(Idempotence.builder(any)
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build());
    }

    Idempotence closeAfterwards(Idempotence idempotence) {
        open.add(idempotence);
        return idempotence;
    }

    Idempotence idempotence(IdempotencePolicy policy) {
        return over(storage, policy);
    }

    Idempotence idempotence() {
        return idempotence(IdempotencePolicy.defaults());
    }

    String work() {
        return "run " + runs.incrementAndGet();
    }

    Refusal refusal(Idempotence idempotence) {
        return refusalOf(() -> idempotence.execute(ID, this::work));
    }
}
