package io.idempotence.server.jdbc;

import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The tables and the statements on them. The statements exist after a check has found the tables in the expected form. */
final class Tables {
    private static final int CREATE_TRIES = 5;
    private static final Duration FAILURE_COUNTS_FOR = Duration.ofSeconds(1);

    private final Database database;
    private final TableName table;
    private final TableName appliedTable;
    private final boolean inTransaction;
    private final boolean createIfMissing;
    private final Runnable onSuccess;

    private final ReentrantLock checking = new ReentrantLock();
    private volatile @Nullable Statements statements;
    private @Nullable CheckFailure failure;

    private record CheckFailure(RuntimeException exception, long nanoTime) {
        boolean counts() {
            return System.nanoTime() - nanoTime < FAILURE_COUNTS_FOR.toNanos();
        }
    }

    /** @param onSuccess runs once, after the check that succeeded */
    Tables(
            Database database,
            TableName table,
            TableName appliedTable,
            boolean inTransaction,
            boolean createIfMissing,
            Runnable onSuccess) {
        this.database = database;
        this.table = table;
        this.appliedTable = appliedTable;
        this.inTransaction = inTransaction;
        this.createIfMissing = createIfMissing;
        this.onSuccess = onSuccess;
    }

    /** Returns null before a check has succeeded. */
    @Nullable
    Dialect dialect() {
        Statements known = statements;
        return known == null ? null : known.dialect();
    }

    /**
     * The statements, after a check unless one has succeeded. Checks run one at a time. A failed check is repeated after one second at the
     * earliest.
     *
     * @throws StorageUnavailableException if the database cannot be reached or a table does not have the expected form; nothing was sent
     */
    Statements statements() {
        Statements known = statements;
        return known != null ? known : checkInTurn();
    }

    private Statements checkInTurn() {
        try {
            if (!checking.tryLock(database.timeoutSeconds(), TimeUnit.SECONDS)) {
                throw StorageUnavailableException.notSent(
                        "the database was not reached yet; another call still tries to connect", null);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw StorageUnavailableException.notSent("the database was not reached yet: interrupted", e);
        }
        try {
            Statements known = statements;
            if (known != null) {
                return known;
            }
            if (failure == null || !failure.counts()) {
                try {
                    return check();
                } catch (RuntimeException e) {
                    failure = new CheckFailure(e, System.nanoTime());
                }
            }
            throw StorageUnavailableException.notSent(
                    String.valueOf(failure.exception().getMessage()), failure.exception());
        } finally {
            checking.unlock();
        }
    }

    /**
     * Connects, detects the kind of database, and checks the tables.
     *
     * @throws IllegalArgumentException if the database is not supported
     * @throws IllegalStateException if a table is missing, differs from the schema file, or can have several rows per ID
     * @throws StorageUnavailableException if the database does not respond
     */
    Statements check() {
        Dialect dialect = database.run("report its kind", Session::dialect);
        Statements found = new Statements(dialect, table, appliedTable, inTransaction);
        SQLException missing = null;
        if (!createIfMissing) {
            missing = missing(found);
        } else if (!areThere(found)) {
            missing = create(found);
        }
        if (missing != null) {
            throw new IllegalStateException(
                    "table " + table + (inTransaction ? " or " + appliedTable : "")
                            + " is missing or differs from the schema file (" + missing.getSQLState()
                            + "); give the right table's name, or create it with " + dialect.schemaLocation()
                            + " (in this jar) or createIfMissing()",
                    missing);
        }
        statements = found;
        onSuccess.run();
        return found;
    }

    private boolean areThere(Statements statements) {
        try {
            return missing(statements) == null;
        } catch (IllegalStateException | StorageUnavailableException perhapsBeingCreated) {
            // While another instance creates a table on H2, its key is missing or cannot be read. A creation waits for
            // that,
            // and reports what remains wrong.
            return false;
        }
    }

    /**
     * Creates the tables. IF NOT EXISTS is not safe against concurrent instances in every database, so after a failure they may be there.
     *
     * @return the failure if a table or a column is missing afterwards, else null
     */
    private @Nullable SQLException create(Statements statements) {
        for (int tried = 1; ; tried++) {
            SQLException failure = null;
            try {
                database.once(session -> {
                    runSchema(session, statements.dialect());
                    return true;
                });
            } catch (SQLException e) {
                failure = e;
            }
            SQLException missing = missing(statements);
            if (missing == null || failure == null) {
                return missing;
            }
            if (tried == CREATE_TRIES) {
                throw JdbcErrors.unavailable("create the tables", failure);
            }
        }
    }

    /** Reads from the tables and checks their keys. Returns the failure if a table or a column is missing, else null. */
    private @Nullable SQLException missing(Statements statements) {
        try {
            probe(statements);
            return null;
        } catch (SQLException e) {
            if (JdbcErrors.isMissing(e) && !JdbcErrors.isRefusal(e)) {
                return e;
            }
            throw JdbcErrors.unavailable("read its tables", e);
        }
    }

    private void probe(Statements statements) throws SQLException {
        database.once(session -> {
            UniqueId.check(session, table, statements.probe);
            if (inTransaction) {
                UniqueId.check(session, appliedTable, statements.probeMarks);
            }
            return true;
        });
    }

    /** Runs the statements of the schema file in this jar. */
    private void runSchema(Session session, Dialect dialect) throws SQLException {
        for (String statement : schema(dialect)) {
            try (Statement ddl = session.connection().createStatement()) {
                session.limit(ddl);
                ddl.execute(statement);
            }
        }
    }

    private List<String> schema(Dialect dialect) {
        String file = read(dialect)
                .replaceAll("(?m)^--.*$", "")
                .replace("idempotence_record_expires", table.local() + "_expires")
                .replace("idempotence_applied_expires", appliedTable.local() + "_expires");
        // Two steps, so that a table named like the other one's default is not renamed twice.
        file = file.replaceAll("\\bidempotence_record\\b", "{t}")
                .replaceAll("\\bidempotence_applied\\b", "{a}")
                .replace("{t}", table.value())
                .replace("{a}", appliedTable.value());
        List<String> statements = new ArrayList<>();
        for (String statement : file.split(";", -1)) {
            if (!statement.isBlank()) {
                statements.add(statement.strip());
            }
        }
        return statements;
    }

    private static String read(Dialect dialect) {
        try (InputStream in = Tables.class.getResourceAsStream(dialect.schemaFile)) {
            if (in == null) {
                throw new IllegalStateException(dialect.schemaLocation() + " is not on the class path");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IllegalStateException(dialect.schemaLocation() + " cannot be read", e);
        }
    }
}
