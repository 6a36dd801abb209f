package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.Formats;
import io.idempotence.server.storage.StorageKey;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Records that other versions have stored in a database. */
class JdbcFormatTest {
    private static final long IN_2100 = 4_102_444_800_000L;

    private static JdbcIdempotenceStorage storage(Databases databases) {
        return databases.storage().createIfMissing().build();
    }

    private static void insert(Databases databases, StorageKey key, int format, List<String> record)
            throws SQLException {
        try (Connection connection = databases.pool().getConnection();
                PreparedStatement insert = connection.prepareStatement("INSERT INTO idempotence_record"
                        + " (id, format, state, taken_over, fence, owner, fingerprint, lease_until, expires_at, result)"
                        + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            insert.setString(1, key.value());
            insert.setInt(2, format);
            insert.setString(3, record.get(1));
            insert.setInt(4, Integer.parseInt(record.get(2)));
            insert.setLong(5, Long.parseLong(record.get(3)));
            insert.setBytes(6, HexFormat.of().parseHex(record.get(4)));
            insert.setBytes(7, HexFormat.of().parseHex(record.get(5)));
            insert.setLong(8, Long.parseLong(record.get(6)));
            insert.setLong(9, IN_2100);
            insert.setBytes(
                    10, record.get(7).equals("-") ? null : HexFormat.of().parseHex(record.get(7)));
            insert.executeUpdate();
        }
    }

    @ParameterizedTest
    @EnumSource
    void recordsOfFormatOneAreRead(Databases databases) throws SQLException {
        JdbcIdempotenceStorage storage = storage(databases);
        for (List<String> record : Formats.records("jdbc-format-1.txt").toList()) {
            StorageKey key = Claims.newKey();
            insert(databases, key, 1, record);
            Formats.assertRead(record.get(0), storage, key);
        }
    }

    @ParameterizedTest
    @EnumSource
    void recordsOfANewerFormatAreRefusedAndLeftAsTheyAre(Databases databases) throws SQLException {
        JdbcIdempotenceStorage storage = storage(databases);
        for (List<String> record : Formats.records("jdbc-format-1.txt").toList()) {
            StorageKey key = Claims.newKey();
            insert(databases, key, 2, record);
            Formats.assertNewerFormatIsRefused(storage, key, "its format is 2, this version reads 1");
            assertThat(databases.number("SELECT COUNT(*) FROM idempotence_record WHERE id = '" + key.value()
                            + "' AND format = 2 AND state = '" + record.get(1) + "' AND fence = " + record.get(3)
                            + " AND lease_until = " + record.get(6) + " AND expires_at = " + IN_2100))
                    .isEqualTo(1);
        }
    }
}
