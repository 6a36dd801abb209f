package io.idempotence.server.storage;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.UUID;

/** Keys, requests and claims for the tests of storages. */
public final class Claims {
    public static final Duration LEASE = Duration.ofMinutes(10);
    public static final Duration SHORT = Duration.ofMillis(60);
    public static final Duration RETENTION = Duration.ofHours(1);

    private static final SecureRandom RANDOM = new SecureRandom();

    private Claims() {}

    public static StorageKey newKey() {
        return newKey("payments");
    }

    public static StorageKey newKey(String namespace) {
        return StorageKey.of(
                namespace, "", "", new IdempotenceId(UUID.randomUUID().toString()));
    }

    public static ClaimRequest request(StorageKey key) {
        return request(key, LEASE);
    }

    public static ClaimRequest request(StorageKey key, Duration lease) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), lease, RETENTION, false);
    }

    public static ClaimRequest takeOver(StorageKey key) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), LEASE, RETENTION, true);
    }

    public static Claim claim(IdempotenceStorage storage, StorageKey key) {
        return claim(storage, key, LEASE);
    }

    public static Claim claim(IdempotenceStorage storage, StorageKey key, Duration lease) {
        return ((ClaimResult.Claimed) storage.claim(request(key, lease))).claim();
    }
}
