package io.idempotence.server.jdbc;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.UUID;

/** Requests as the tests of this package make them. */
final class Claims {
    static final Duration LEASE = Duration.ofMinutes(10);
    static final Duration SHORT = Duration.ofMillis(60);
    static final Duration RETENTION = Duration.ofHours(1);

    private static final SecureRandom RANDOM = new SecureRandom();

    private Claims() {}

    static StorageKey newKey() {
        return newKey("payments");
    }

    static StorageKey newKey(String namespace) {
        return StorageKey.of(
                namespace, "", "", new IdempotenceId(UUID.randomUUID().toString()));
    }

    static ClaimRequest request(StorageKey key) {
        return request(key, LEASE);
    }

    static ClaimRequest request(StorageKey key, Duration lease) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), lease, RETENTION, false);
    }

    static Claim claim(IdempotenceStorage storage, StorageKey key) {
        return claim(storage, key, LEASE);
    }

    static Claim claim(IdempotenceStorage storage, StorageKey key, Duration lease) {
        return ((ClaimResult.Claimed) storage.claim(request(key, lease))).claim();
    }
}
