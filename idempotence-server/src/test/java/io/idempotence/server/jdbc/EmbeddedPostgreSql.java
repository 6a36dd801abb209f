package io.idempotence.server.jdbc;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.function.Consumer;

/** A real PostgreSQL server on a free port. Closing it stops it. */
public final class EmbeddedPostgreSql {
    private static final Duration START_TIMEOUT = Duration.ofSeconds(60);
    private static final int PORT_ATTEMPTS = 3;

    private EmbeddedPostgreSql() {}

    /** Starts a server whose commits do not wait for the disk. */
    public static EmbeddedPostgres start() {
        return start(server -> {});
    }

    /** Starts a server with settings of its own. If another process takes its port before it does, it gets another one. */
    public static EmbeddedPostgres start(Consumer<EmbeddedPostgres.Builder> settings) {
        for (int attempt = 1; ; attempt++) {
            EmbeddedPostgres.Builder server = EmbeddedPostgres.builder().setPGStartupWait(START_TIMEOUT);
            settings.accept(server);
            try {
                return server.start();
            } catch (IOException e) {
                if (attempt == PORT_ATTEMPTS) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }
}
