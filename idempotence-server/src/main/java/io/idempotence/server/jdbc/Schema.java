package io.idempotence.server.jdbc;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** The schema files in this jar. */
final class Schema {
    private Schema() {}

    static void create(Session session, Dialect dialect, TableName table, TableName applied) throws SQLException {
        for (String statement : statements(dialect, table, applied)) {
            try (Statement ddl = session.connection().createStatement()) {
                session.limit(ddl);
                ddl.execute(statement);
            }
        }
    }

    static String location(Dialect dialect) {
        return "io/idempotence/server/jdbc/" + dialect.schemaFile;
    }

    private static List<String> statements(Dialect dialect, TableName table, TableName applied) {
        String file = read(dialect)
                .replaceAll("(?m)^--.*$", "")
                .replace("idempotence_record_expires", table.local() + "_expires")
                .replace("idempotence_applied_expires", applied.local() + "_expires");
        // Two steps, so that a table named like the other one's default is not renamed twice.
        file = file.replaceAll("\\bidempotence_record\\b", "{t}")
                .replaceAll("\\bidempotence_applied\\b", "{a}")
                .replace("{t}", table.value())
                .replace("{a}", applied.value());
        List<String> statements = new ArrayList<>();
        for (String statement : file.split(";", -1)) {
            if (!statement.isBlank()) {
                statements.add(statement.strip());
            }
        }
        return statements;
    }

    private static String read(Dialect dialect) {
        try (InputStream in = Schema.class.getResourceAsStream(dialect.schemaFile)) {
            if (in == null) {
                throw new IllegalStateException(location(dialect) + " is not on the class path");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IllegalStateException(location(dialect) + " cannot be read", e);
        }
    }
}
