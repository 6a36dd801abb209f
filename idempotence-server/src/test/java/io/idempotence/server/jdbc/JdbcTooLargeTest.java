package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.SQLTransientConnectionException;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Results that a database never accepts. While they are retried, nothing runs, and their IDs are in progress. */
class JdbcTooLargeTest {
    private static final int PACKET = 1 << 20;

    private final StorageKey key = Claims.newKey();

    private static JdbcIdempotenceStorage storage(Databases databases) {
        return databases.storage().createIfMissing().build();
    }

    /** Connections that were opened while the server took packets of one MiB at most. */
    private static final class LimitedPool implements AutoCloseable {
        private final Databases databases;
        private final HikariDataSource pool;

        LimitedPool(Databases databases, int size) {
            this.databases = databases;
            storage(databases);
            databases.execute("SET GLOBAL max_allowed_packet = " + PACKET);
            pool = databases.newPool(config -> config.setMaximumPoolSize(size));
        }

        @Override
        public void close() {
            pool.close();
            databases.execute("SET GLOBAL max_allowed_packet = DEFAULT");
        }
    }

    private void assertResult(JdbcIdempotenceStorage storage, byte[] expected) {
        assertThat(storage.claim(Claims.request(key)))
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).isEqualTo(expected));
    }

    @ParameterizedTest
    @EnumSource(names = {"MARIADB", "MYSQL"})
    @DisplayName("T10, T23, T24: a result that exceeds max_allowed_packet is recorded as unavailable")
    void aResultThatExceedsThePacketIsRecordedAsUnavailable(Databases databases) {
        try (LimitedPool limited = new LimitedPool(databases, 1)) {
            JdbcIdempotenceStorage storage =
                    JdbcIdempotenceStorage.builder(limited.pool).build();
            Claim claim = Claims.claim(storage, key);

            assertThat(storage.completeProvisionally(claim, new byte[4 * PACKET], Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertResult(storage, ClaimResult.noResult());
            assertThat(storage.complete(claim, new byte[PACKET], Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertResult(storage, ClaimResult.noResult());
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"MARIADB", "MYSQL"})
    @DisplayName("T22: a large result is not given up because of a failure that its size cannot cause")
    void aLargeResultIsNotGivenUpForAnotherReason(Databases databases) {
        try (LimitedPool limited = new LimitedPool(databases, 2)) {
            SpyDataSource spy = new SpyDataSource(limited.pool);
            JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(spy).build();
            Claim claim = Claims.claim(storage, key);
            // It just fits if the driver escapes each byte. What is beside it is shorter than is assumed.
            byte[] result = new byte[PACKET / 2 - 1_000];

            spy.refusal.set(new SQLTransientConnectionException("no connection was free"));
            assertThatThrownBy(() -> storage.complete(claim, result, Claims.RETENTION))
                    .isInstanceOf(StorageUnavailableException.class);
            spy.failNext(new SQLTimeoutException("the statement took too long", "70100", 1969));
            assertThatThrownBy(() -> storage.complete(claim, result, Claims.RETENTION))
                    .isInstanceOf(StorageUnavailableException.class);

            assertThat(storage.complete(claim, result, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            assertResult(storage, result);
        }
    }

    @ParameterizedTest
    @EnumSource
    @DisplayName("T22: a result that fits is not given up because a connection breaks")
    void aResultThatFitsIsNotGivenUp(Databases databases) {
        storage(databases);
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(spy).build();
        Claim claim = Claims.claim(storage, key);
        byte[] result = new byte[PACKET];
        spy.failNext(new SQLException("Socket error", "08000"));

        assertThatThrownBy(() -> storage.complete(claim, result, Claims.RETENTION))
                .isInstanceOf(StorageUnavailableException.class);
        assertThat(storage.complete(claim, result, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
        assertResult(storage, result);
    }
}
