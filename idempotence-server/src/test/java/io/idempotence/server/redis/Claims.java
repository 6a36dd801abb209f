package io.idempotence.server.redis;

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
    static final Duration LEASE = Duration.ofSeconds(30);
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
        return request(key, false);
    }

    static ClaimRequest takeOver(StorageKey key) {
        return request(key, true);
    }

    private static ClaimRequest request(StorageKey key, boolean takeOver) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), LEASE, RETENTION, takeOver);
    }

    static Claim claim(IdempotenceStorage storage, StorageKey key) {
        return ((ClaimResult.Claimed) storage.claim(request(key))).claim();
    }
}
