package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.StorageKey;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/** H2 in the place of the database that the application has in production. Some modes lack types and clauses that H2 has otherwise. */
class JdbcH2ModesTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "PostgreSQL",
                "PostgreSQL;DATABASE_TO_LOWER=TRUE;DEFAULT_NULL_ORDERING=HIGH",
                "MySQL",
                "MariaDB",
                "Oracle",
                "MSSQLServer",
                "DB2",
                "Derby",
                "HSQLDB",
                "STRICT",
                "LEGACY"
            })
    void tablesAreCreatedAndRecordsAreWrittenListedAndDeleted(String mode) {
        JdbcIdempotenceStorage.Builder builder = JdbcIdempotenceStorage.builder(new DriverManagerDataSource(
                        "jdbc:h2:mem:" + mode.replaceAll("\\W", "_") + ";DB_CLOSE_DELAY=-1;MODE=" + mode))
                .createIfMissing();
        try (JdbcIdempotenceStorage plain = builder.build();
                JdbcIdempotenceStorage inTransaction = builder.inTransaction().build()) {
            assertWorks(plain);
            assertWorks(inTransaction);
        }
    }

    private static void assertWorks(JdbcIdempotenceStorage storage) {
        StorageKey key = Claims.newKey();
        Claim claim = Claims.claim(storage, key);
        byte[] result = {1, 0, -1};
        storage.complete(claim, result, Claims.RETENTION);

        assertThat(storage.claim(Claims.request(key)))
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).isEqualTo(result));
        assertThat(storage.list("payments")).extracting(IdempotenceRecord::key).containsExactly(key);
        assertThat(storage.deleteExpired(10)).isZero();
        assertThat(storage.delete(key)).isTrue();
    }
}
