package io.idempotence.server.jdbc;

import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The check that a table has at most one row per ID. Claims and marks rely on it: without that key every duplicate would run. */
final class UniqueId {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    private static final List<String> ID = List.of("id");

    /** The driver of PostgreSQL does not report the schema of a result. */
    private static final Sql NAME_IN_POSTGRESQL = new Sql("SELECT n.nspname, c.relname FROM pg_class c"
            + " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = CAST(:table AS regclass)");

    private UniqueId() {}

    /** The name of a table as the database has it. A statement may have it in another case and without its schema. */
    private record Name(@Nullable String catalog, @Nullable String schema, String table) {
        static Name of(ResultSetMetaData columns) throws SQLException {
            return new Name(
                    orNull(columns.getCatalogName(1)),
                    orNull(columns.getSchemaName(1)),
                    String.valueOf(columns.getTableName(1)));
        }

        private static @Nullable String orNull(@Nullable String name) {
            return name == null || name.isEmpty() ? null : name;
        }

        boolean isComplete() {
            return !table.isEmpty() && (catalog != null || schema != null);
        }
    }

    /**
     * Reads from a table, and checks its keys. Warns if the database does not report them: of a view, for example.
     *
     * @param probe selects columns of the table only
     * @throws SQLException if the table cannot be read
     * @throws IllegalStateException if it can have several rows per ID
     */
    static void check(Session session, TableName table, Sql probe) throws SQLException {
        Name inResult = session.query(probe, new Sql.Parameters(), rows -> Name.of(rows.getMetaData()));
        try {
            Name name = session.dialect() == Dialect.POSTGRESQL
                    ? session.query(NAME_IN_POSTGRESQL, new Sql.Parameters().with("table", table.value()), rows -> {
                        rows.next();
                        return new Name(null, rows.getString(1), rows.getString(2));
                    })
                    : inResult;
            DatabaseMetaData database = session.connection().getMetaData();
            if (name.isComplete()) {
                Collection<List<String>> keys = uniqueKeys(database, name);
                if (keys.contains(ID)) {
                    return;
                }
                if (!keys.isEmpty() || isTable(database, name)) {
                    throw new IllegalStateException("table " + table + " has " + shown(keys)
                            + ", so one ID could have several rows, and duplicates would run; give it PRIMARY KEY (id), as in "
                            + session.dialect().schemaLocation() + " (in this jar)");
                }
            }
        } catch (SQLException e) {
            if (!(e instanceof SQLFeatureNotSupportedException) && !JdbcErrors.isMissing(e)) {
                throw e;
            }
        }
        LOG.warn(
                "the database does not report the keys of table {}: see to it that it has PRIMARY KEY (id), because duplicates would"
                        + " run without it",
                table);
    }

    private static Collection<List<String>> uniqueKeys(DatabaseMetaData database, Name of) throws SQLException {
        Map<String, List<String>> keys = new LinkedHashMap<>();
        try (ResultSet rows = database.getIndexInfo(of.catalog, of.schema, of.table, true, true)) {
            while (rows.next()) {
                boolean isPartial = rows.getString("FILTER_CONDITION") != null;
                String index = rows.getString("INDEX_NAME");
                if (index != null && !isPartial) {
                    keys.computeIfAbsent(index, name -> new ArrayList<>())
                            .add(String.valueOf(rows.getString("COLUMN_NAME")).toLowerCase(Locale.ROOT));
                }
            }
        }
        return keys.values();
    }

    private static boolean isTable(DatabaseMetaData database, Name name) throws SQLException {
        try (ResultSet rows = database.getTables(name.catalog, name.schema, name.table, null)) {
            while (rows.next()) {
                // An underscore in a name also matches other characters.
                if (name.table.equals(rows.getString("TABLE_NAME"))
                        && rows.getString("TABLE_TYPE").endsWith("TABLE")) {
                    return true;
                }
            }
            return false;
        }
    }

    private static String shown(Collection<List<String>> keys) {
        if (keys.isEmpty()) {
            return "no unique key";
        }
        return (keys.size() == 1 ? "the unique key " : "the unique keys ")
                + String.join(
                        ", ",
                        keys.stream()
                                .map(key -> "(" + String.join(", ", key) + ")")
                                .toList());
    }
}
