package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.IdempotenceStorageContract;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/**
 * The storage contract in in-transaction mode, with one exception: an execution that was interrupted before its commit has done nothing.
 */
class JdbcInTransactionStorageTest extends IdempotenceStorageContract {
    @Override
    protected IdempotenceStorage createStorage() {
        return Databases.POSTGRESQL.storage().createIfMissing().inTransaction().build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.POSTGRESQL.letPass(duration);
    }

    /** It is taken over, whatever the request says. */
    @Test
    @Override
    public void abandonedClaimIsReportedAndNotTakenOver() {
        try (IdempotenceStorage storage = createStorage()) {
            StorageKey key = Claims.newKey();
            Claims.claim(storage, key, Claims.SHORT);
            letPass(Claims.SHORT);
            ClaimRequest heir = Claims.request(key);

            assertThat(heir.takeOver()).isFalse();
            assertThat(storage.claim(heir))
                    .isEqualTo(new ClaimResult.Claimed(new Claim(key, heir.fingerprint(), heir.owner(), 2), true));
        }
    }
}
