package io.idempotence.server.jdbc;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageProperties;
import java.time.Duration;
import net.jqwik.api.lifecycle.BeforeContainer;

class JdbcPostgreSqlPropertiesTest extends StorageProperties {
    private static JdbcIdempotenceStorage storage;

    @BeforeContainer
    static void start() {
        storage = Databases.POSTGRESQL.storage().createIfMissing().build();
    }

    @Override
    protected IdempotenceStorage storage() {
        return storage;
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.POSTGRESQL.letPass(duration);
    }
}
