package io.idempotence.it.fault;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;

class ClocksApartOnPostgreSqlIT extends ClocksApartContract {
    private EmbeddedPostgres postgres;

    @Override
    String startStorage() throws IOException {
        postgres = EmbeddedPostgres.builder().setServerConfig("fsync", "off").start();
        return postgres.getJdbcUrl("postgres", "postgres");
    }

    @Override
    void stopStorage() throws IOException {
        postgres.close();
    }
}
