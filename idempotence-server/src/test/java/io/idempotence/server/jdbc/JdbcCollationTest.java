package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.StorageKey;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tables whose collation was changed, as it happens to all tables of a database that is converted to utf8mb4. */
class JdbcCollationTest {
    /** In most of these a semicolon sorts before a colon, and case does not count. */
    @ParameterizedTest
    @CsvSource({
        "MARIADB, utf8mb4_uca1400_ai_ci",
        "MARIADB, utf8mb4_unicode_ci",
        "MARIADB, utf8mb4_general_ci",
        "MYSQL, utf8mb4_0900_ai_ci",
        "POSTGRESQL, und-x-icu"
    })
    void listIsCompleteInAnyCollation(Databases databases, String collation) {
        String table = "in_" + collation.replace('-', '_');
        JdbcIdempotenceStorage.Builder builder =
                databases.storage().table(table).appliedTable(table + "_applied");
        builder.createIfMissing().build().close();
        databases.execute("ALTER TABLE " + table
                + (databases == Databases.POSTGRESQL
                        ? " ALTER COLUMN id TYPE VARCHAR(128) COLLATE \"" + collation + "\""
                        : " CONVERT TO CHARACTER SET utf8mb4 COLLATE " + collation));
        try (JdbcIdempotenceStorage storage = builder.build()) {
            List<StorageKey> written = new ArrayList<>();
            for (int i = 0; i < 210; i++) {
                StorageKey key = Claims.newKey("orders");
                Claims.claim(storage, key);
                written.add(key);
                for (String other : List.of("Orders", "orders-2", "order", "orders2")) {
                    Claims.claim(storage, Claims.newKey(other));
                }
            }

            assertThat(storage.list("orders"))
                    .extracting(IdempotenceRecord::key)
                    .containsExactlyInAnyOrderElementsOf(written);
            assertThat(storage.list("nobody")).isEmpty();
        }
    }
}
