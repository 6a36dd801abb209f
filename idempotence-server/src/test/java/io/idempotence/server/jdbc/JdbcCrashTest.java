package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.KilledProcess;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import java.sql.Connection;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** A process that is killed at any step of a payment. It has paid once or not at all, and after the next attempt exactly once. */
@Tag("all")
class JdbcCrashTest {
    static Stream<Arguments> everyStep() {
        return Stream.of(Databases.POSTGRESQL, Databases.MARIADB)
                .flatMap(
                        database -> Stream.of(CrashingPayment.Step.values()).map(step -> Arguments.of(database, step)));
    }

    @ParameterizedTest
    @MethodSource("everyStep")
    void paymentOfAProcessKilledAtAnyStepIsMadeExactlyOnce(Databases database, CrashingPayment.Step step)
            throws Exception {
        database.execute("CREATE TABLE IF NOT EXISTS payment (id VARCHAR(128) NOT NULL)");
        StorageKey key = Claims.newKey();
        try (JdbcIdempotenceStorage storage =
                database.storage().createIfMissing().inTransaction().build()) {
            KilledProcess.at(CrashingPayment.at(step), CrashingPayment.class, database.url(), key.value(), step.name());
            database.letPass(CrashingPayment.LEASE);

            boolean committed = step.compareTo(CrashingPayment.Step.COMMITTED) >= 0;
            assertThat(payments(database, key)).isEqualTo(committed ? 1 : 0);
            ClaimResult next = storage.claim(Claims.request(key));
            if (next instanceof ClaimResult.Claimed claimed) {
                assertThat(claimed.takenOver()).isTrue();
                try (Connection business = database.pool().getConnection()) {
                    business.setAutoCommit(false);
                    CrashingPayment.pay(storage, business, claimed.claim());
                    business.commit();
                }
                storage.complete(claimed.claim(), new byte[] {2, 'o', 'k'}, Claims.RETENTION);
            }
            assertThat(next instanceof ClaimResult.Completed).isEqualTo(committed);
            assertThat(payments(database, key)).isEqualTo(1);

            byte[] replayed = ((ClaimResult.Completed) storage.claim(Claims.request(key))).result();
            assertThat(replayed)
                    .isEqualTo(
                            step == CrashingPayment.Step.COMMITTED ? ClaimResult.noResult() : new byte[] {2, 'o', 'k'});
        }
    }

    private static long payments(Databases database, StorageKey key) {
        return database.number("SELECT COUNT(*) FROM payment WHERE id = '" + key.value() + "'");
    }
}
