package io.idempotence.server.storage;

import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * The behaviour every {@link IdempotenceStorage} shares, subject by subject. Extend it, say how to create one and how time passes.
 */
public abstract class IdempotenceStorageContract
        implements ClaimContract,
                ConcurrentClaimsContract,
                OwnershipContract,
                CompletionContract,
                RetentionContract,
                ResolutionContract,
                DeletionContract {
    private IdempotenceStorage storage;
    private StorageKey key;

    /** A storage, empty or shared with other tests, that is closed after the test. */
    protected abstract IdempotenceStorage createStorage();

    /** Returns when the storage's own clock has gone on by at least {@code duration}. */
    protected abstract void letPass(Duration duration);

    @BeforeEach
    void open() {
        storage = createStorage();
        key = newKey();
    }

    @AfterEach
    void close() {
        storage.close();
        storage.close();
    }

    @Override
    public final IdempotenceStorage storage() {
        return storage;
    }

    @Override
    public final StorageKey key() {
        return key;
    }

    @Override
    public final void passTime(Duration duration) {
        letPass(duration);
    }

    @Override
    public final void use(StorageKey other) {
        key = other;
    }
}
