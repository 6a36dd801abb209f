package io.idempotence.server.jdbc;

import static io.idempotence.server.jdbc.Effects.assertAppliedWithoutResult;
import static io.idempotence.server.jdbc.Effects.begin;
import static io.idempotence.server.jdbc.Effects.effects;
import static io.idempotence.server.jdbc.Effects.run;
import static io.idempotence.server.jdbc.Effects.storage;
import static io.idempotence.server.jdbc.Effects.takeEffect;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.server.storage.AtOnce;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.sql.Connection;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.awaitility.Awaitility;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Owners of one ID whose transactions overlap: only one of them takes effect. */
class JdbcOvertakenTransactionTest {
    private final StorageKey key = Claims.newKey();

    @ParameterizedTest
    @EnumSource
    void openBusinessTransactionHoldsUpNobody(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key, Claims.SHORT);
        try (Connection business = begin(databases)) {
            takeEffect(business, key);
            storage.markApplied(business, claim);

            // Whatever waited for the open transaction would end in the statement timeout.
            assertThat(storage.renew(claim, Claims.LEASE)).isEqualTo(new WriteResult.Done());
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
            assertThat(storage.find(key)).isPresent();
            assertThat(storage.renew(claim, Duration.ofMillis(1))).isEqualTo(new WriteResult.Done());
            databases.letPass(Duration.ofMillis(2));
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
            business.rollback();
        }
    }

    @ParameterizedTest
    @EnumSource
    void lateCommitOfTheOldOwnerWinsAndItsHeirRollsBack(Databases databases) throws Exception {
        race(databases, true);
    }

    @ParameterizedTest
    @EnumSource
    void lateRollbackOfTheOldOwnerLetsItsHeirTakeEffect(Databases databases) throws Exception {
        race(databases, false);
    }

    private void race(Databases databases, boolean commit) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim late = Claims.claim(storage, key, Claims.SHORT);
        try (Connection business = begin(databases)) {
            takeEffect(business, key);
            storage.markApplied(business, late);
            databases.letPass(Claims.SHORT);
            Claim heir = Claims.claim(storage, key);

            CompletableFuture<Throwable> other =
                    CompletableFuture.supplyAsync(() -> catchThrowable(() -> run(databases, storage, heir)));
            Awaitility.await().pollDelay(Duration.ofMillis(100)).until(() -> !other.isDone());
            if (commit) {
                business.commit();
                assertThat(other.get()).isInstanceOf(ExecutionOvertakenException.class);
                assertThat(storage.release(heir, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
                assertAppliedWithoutResult(storage.claim(Claims.request(key)));
            } else {
                business.rollback();
                assertThat(other.get()).isNull();
            }
        }
        assertThat(storage.complete(late, new byte[] {2}, Claims.RETENTION)).isInstanceOf(WriteResult.Fenced.class);
        assertThat(effects(databases, key)).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void ownerThatLostItsClaimCannotMark(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim late = Claims.claim(storage, key, Claims.SHORT);
        databases.letPass(Claims.SHORT);
        Claim heir = Claims.claim(storage, key);

        assertThatThrownBy(() -> run(databases, storage, late)).isInstanceOf(ExecutionOvertakenException.class);
        run(databases, storage, heir);
        assertThat(effects(databases, key)).isEqualTo(1);
    }

    /** After an operator's delete another request may use the ID, and its fence is 1 again. */
    @ParameterizedTest
    @EnumSource
    void ownerWhoseIdIsUsedByAnotherRequestCannotMark(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim late = Claims.claim(storage, key);
        storage.delete(key);
        Claim other = Claims.claim(storage, key);
        assertThat(other.fence()).isEqualTo(late.fence());

        assertThatThrownBy(() -> run(databases, storage, late)).isInstanceOf(ExecutionOvertakenException.class);
        run(databases, storage, other);
        assertThat(effects(databases, key)).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void ofManyOwnersThatOvertakeEachOtherOneTakesEffect(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        AtOnce.run(6, () -> {
            // A lease of 1 ms is over before anything is committed: each owner is overtaken by the next one.
            while (!Thread.currentThread().isInterrupted()) {
                ClaimResult result = storage.claim(Claims.request(key, Duration.ofMillis(1)));
                if (result instanceof ClaimResult.Completed) {
                    return null;
                }
                if (result instanceof ClaimResult.Claimed claimed) {
                    try {
                        run(databases, storage, claimed.claim());
                    } catch (ExecutionOvertakenException | StorageUnavailableException e) {
                        storage.release(claimed.claim(), Claims.RETENTION);
                    }
                }
            }
            return null;
        });
        assertThat(effects(databases, key)).isEqualTo(1);
    }
}
