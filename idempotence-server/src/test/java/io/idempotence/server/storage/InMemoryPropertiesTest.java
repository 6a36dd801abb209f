package io.idempotence.server.storage;

import java.time.Duration;

class InMemoryPropertiesTest extends StorageProperties {
    private final MovingClock clock = new MovingClock();
    private final IdempotenceStorage storage = IdempotenceStorage.inMemory(100_000, clock);

    @Override
    protected IdempotenceStorage storage() {
        return storage;
    }

    @Override
    protected void letPass(Duration duration) {
        clock.advance(duration);
    }
}
