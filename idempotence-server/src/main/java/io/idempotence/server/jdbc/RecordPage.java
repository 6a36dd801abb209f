package io.idempotence.server.jdbc;

import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StoredRecord;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A page of records, ordered by key.
 *
 * @param records the records
 * @param last the key after which the next page begins; empty if this is the last page
 */
record RecordPage(List<IdempotenceRecord> records, Optional<String> last) {
    static final int SIZE = 200;
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);

    static RecordPage read(ResultSet rows) throws SQLException {
        List<IdempotenceRecord> records = new ArrayList<>();
        String last = "";
        int seen = 0;
        while (rows.next()) {
            seen++;
            last = rows.getString("id");
            Row row = Row.read(rows);
            try {
                StoredRecord record = row.settled();
                if (record != null) {
                    records.add(record.seenAt(new StorageKey(last), row.now()));
                }
            } catch (CorruptRecordException e) {
                LOG.debug("a corrupt record is left out of a list: {}", e.getMessage());
            }
        }
        return new RecordPage(records, seen < SIZE ? Optional.empty() : Optional.of(last));
    }
}
