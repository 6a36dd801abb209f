package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests of rows that somebody else locks, and of rows that change between two statements. */
class JdbcLocksTest {
    /** A statement timeout that is soon over, and longer than a busy machine pauses. */
    private static final Duration SOON = Duration.ofSeconds(3);

    /** More than a busy machine needs, less than forever. */
    private static final Duration BOUND = Duration.ofSeconds(20);

    private final StorageKey key = Claims.newKey();

    @ParameterizedTest
    @EnumSource
    void lockedRowIsUnavailableAfterTheStatementTimeout(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = databases.storage().createIfMissing().build();
        JdbcIdempotenceStorage impatient =
                databases.storage().statementTimeout(SOON).build();
        Claim claim = Claims.claim(storage, key);
        try (Connection other = databases.pool().getConnection();
                Statement lock = other.createStatement()) {
            other.setAutoCommit(false);
            lock.execute("SELECT id FROM idempotence_record WHERE id = '" + key.value() + "' FOR UPDATE");
            long start = System.nanoTime();
            assertThatThrownBy(() -> impatient.complete(claim, new byte[1], Claims.RETENTION))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("timeout")
                    .hasMessageNotContaining(key.value())
                    .hasCauseInstanceOf(SQLException.class);
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(BOUND);
            other.rollback();
        }
        assertThat(storage.complete(claim, new byte[1], Claims.RETENTION)).isEqualTo(new WriteResult.Done());
    }

    @ParameterizedTest
    @EnumSource
    void deadlockOfTwoBusinessTransactionsRollsOneBack(Databases databases) throws Exception {
        // Longer than the databases need to notice it.
        JdbcIdempotenceStorage storage = databases
                .storage()
                .createIfMissing()
                .inTransaction()
                .statementTimeout(SOON.multipliedBy(4))
                .build();
        Claim[] claims = {Claims.claim(storage, key), Claims.claim(storage, Claims.newKey())};
        CyclicBarrier both = new CyclicBarrier(2);
        CompletableFuture<Throwable> other = CompletableFuture.supplyAsync(
                () -> catchThrowable(() -> markBoth(databases, storage, claims[0], claims[1], both)));
        Throwable mine = catchThrowable(() -> markBoth(databases, storage, claims[1], claims[0], both));

        List<Throwable> victims =
                Stream.of(mine, other.get()).filter(Objects::nonNull).toList();
        assertThat(victims)
                .isNotEmpty()
                .allSatisfy(victim -> assertThat(victim).isInstanceOf(StorageUnavailableException.class));
        if (databases != Databases.H2) {
            // H2 does not notice it here, and ends both.
            assertThat(victims)
                    .singleElement()
                    .satisfies(victim -> assertThat(victim).hasMessageContaining("deadlock"));
        }
        for (Claim claim : claims) {
            storage.release(claim, Claims.RETENTION);
            assertThat(storage.claim(Claims.request(claim.key())))
                    .isInstanceOf(victims.size() == 1 ? ClaimResult.Completed.class : ClaimResult.Claimed.class);
        }
    }

    private static void markBoth(
            Databases databases, JdbcIdempotenceStorage storage, Claim first, Claim second, CyclicBarrier both)
            throws Exception {
        try (Connection business = databases.pool().getConnection()) {
            business.setAutoCommit(false);
            storage.markApplied(business, first);
            both.await();
            storage.markApplied(business, second);
            business.commit();
        }
    }

    /** Between the statement that reads it and the one that deletes it. */
    @ParameterizedTest
    @EnumSource
    void recordThatIsClaimedWhileItIsDeletedIsKept(Databases databases) {
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage operator =
                Databases.storage(spy).createIfMissing().build();
        JdbcIdempotenceStorage other = databases.storage().build();
        operator.release(Claims.claim(operator, key), Claims.RETENTION);
        IdempotenceRecord released = operator.find(key).orElseThrow();

        spy.afterNext.set(() -> Claims.claim(other, key));
        assertThat(operator.deleteUnchanged(key, released)).isFalse();

        IdempotenceRecord running = other.find(key).orElseThrow();
        assertThat(running.fence()).isEqualTo(2);
        Claim own = new Claim(key, Fingerprint.NONE, running.owner(), 2);
        spy.afterNext.set(() -> other.renew(own, Claims.RETENTION));
        assertThat(operator.deleteUnchanged(key, running)).as("after a renewal").isTrue();
        assertThat(other.find(key)).isEmpty();
    }
}
