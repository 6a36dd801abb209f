package io.idempotence.benchmarks;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** The calls of a storage that one protected request makes. */
final class Requests {
    static final String NAMESPACE = "payments";
    static final Duration LEASE = Duration.ofSeconds(30);
    static final Duration RETENTION = Duration.ofDays(1);

    /** What the filter records of a 201 with a Content-Type, a Location and no body. */
    static final byte[] CREATED =
            "\1\0\0\u00c9\2\1\0\20application/json\2\0\56/payments/0b9d6c1e-5a3f-4a27-9c57-2f0c7e0d8a11"
                    .getBytes(StandardCharsets.ISO_8859_1);

    private Requests() {}

    static ClaimRequest claimOf(String id) {
        return new ClaimRequest(
                StorageKey.of(NAMESPACE, "", "", new IdempotenceId(id)),
                Fingerprint.NONE,
                Owner.random(ThreadLocalRandom.current()),
                LEASE,
                RETENTION,
                false);
    }

    static Claim claim(IdempotenceStorage storage, ClaimRequest request) {
        if (storage.claim(request) instanceof ClaimResult.Claimed claimed) {
            return claimed.claim();
        }
        throw new IllegalStateException("a new ID was not free");
    }

    static void complete(IdempotenceStorage storage, Claim claim, byte[] result) {
        if (!(storage.complete(claim, result, RETENTION) instanceof WriteResult.Done)) {
            throw new IllegalStateException("a claim was lost");
        }
    }
}
