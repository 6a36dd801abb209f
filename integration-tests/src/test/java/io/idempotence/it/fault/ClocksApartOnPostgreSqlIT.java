package io.idempotence.it.fault;

import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import org.junit.jupiter.api.Tag;

@Tag("all")
class ClocksApartOnPostgreSqlIT extends ClocksApartContract {
    private EmbeddedPostgres postgres;

    @Override
    String startStorage() throws IOException {
        postgres = EmbeddedPostgreSql.start();
        return postgres.getJdbcUrl("postgres", "postgres");
    }

    @Override
    void stopStorage() throws IOException {
        postgres.close();
    }
}
