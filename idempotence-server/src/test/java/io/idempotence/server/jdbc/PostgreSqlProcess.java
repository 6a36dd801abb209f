package io.idempotence.server.jdbc;

import static org.awaitility.Awaitility.await;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** The process of an embedded PostgreSQL, to be killed and started again on its data. */
final class PostgreSqlProcess {
    private final EmbeddedPostgres postgres;
    private final ProcessHandle process;
    private final List<String> command;

    private PostgreSqlProcess(EmbeddedPostgres postgres, ProcessHandle process) {
        this.postgres = postgres;
        this.process = process;
        // PostgreSQL refuses to be run by root, so that root has to be somebody else.
        this.command =
                new ArrayList<>("root".equals(System.getProperty("user.name")) ? List.of("unshare", "-U") : List.of());
        command.add(process.info().command().orElseThrow());
        command.addAll(List.of(process.info().arguments().orElseThrow()));
    }

    static PostgreSqlProcess of(EmbeddedPostgres postgres) throws SQLException {
        try (Connection connection = postgres.getPostgresDatabase().getConnection();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT pg_backend_pid()")) {
            rows.next();
            ProcessHandle backend = ProcessHandle.of(rows.getLong(1)).orElseThrow();
            return new PostgreSqlProcess(postgres, backend.parent().orElseThrow());
        }
    }

    /** By SIGKILL, with all its connections. */
    void kill() {
        List<ProcessHandle> all = new ArrayList<>(process.children().toList());
        all.add(process);
        process.destroyForcibly();
        all.forEach(ProcessHandle::destroyForcibly);
        all.forEach(each -> each.onExit().join());
    }

    /** Returns when it can be asked again. */
    void start() throws IOException {
        Process started = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        Runtime.getRuntime().addShutdownHook(new Thread(started::destroy));
        await().ignoreExceptionsInstanceOf(SQLException.class).until(() -> {
            try (Connection connection = postgres.getPostgresDatabase().getConnection()) {
                return connection.isValid(1);
            }
        });
    }
}
