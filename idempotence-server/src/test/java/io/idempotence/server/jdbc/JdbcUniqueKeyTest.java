package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/** A table may have one row per ID only. Without that key every duplicate would run. */
class JdbcUniqueKeyTest {
    private static JdbcIdempotenceStorage.Builder builder(Databases databases, String table) {
        return databases.storage().table(table).appliedTable(table + "_applied");
    }

    private static void create(Databases databases, String table) {
        builder(databases, table).createIfMissing().build().close();
    }

    private static void dropKey(Databases databases, String table) {
        databases.execute("ALTER TABLE " + table
                + (databases == Databases.POSTGRESQL
                        ? " DROP CONSTRAINT " + new TableName(table).local() + "_pkey"
                        : " DROP PRIMARY KEY"));
    }

    /** As somebody needs it who partitions by the time when rows expire. */
    private static void widenKey(Databases databases, String table) {
        dropKey(databases, table);
        databases.execute("ALTER TABLE " + table + " ADD PRIMARY KEY (id, expires_at)");
    }

    private static void assertRefused(JdbcIdempotenceStorage.Builder builder, String table, String found) {
        assertThatThrownBy(builder::build)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("table " + table + " has " + found)
                .hasMessageContaining("give it PRIMARY KEY (id)")
                .hasMessageContaining(".sql");
    }

    private static void assertWorks(JdbcIdempotenceStorage.Builder builder) {
        try (JdbcIdempotenceStorage storage = builder.build()) {
            StorageKey key = Claims.newKey();
            Claims.claim(storage, key);
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        }
    }

    @ParameterizedTest
    @EnumSource
    void tableWhoseKeyHasAnotherColumnIsRefused(Databases databases) {
        create(databases, "wide");
        widenKey(databases, "wide");

        assertRefused(builder(databases, "wide"), "wide", "the unique key (id, expires_at)");
        assertRefused(builder(databases, "wide").createIfMissing(), "wide", "the unique key (id, expires_at)");
        try (JdbcIdempotenceStorage lazy =
                builder(databases, "wide").lazyStart().build()) {
            assertThatThrownBy(() -> lazy.claim(Claims.request(Claims.newKey())))
                    .isInstanceOfSatisfying(
                            StorageUnavailableException.class,
                            e -> assertThat(e.nothingWritten()).isTrue())
                    .hasMessageContaining("table wide has");
        }
    }

    @ParameterizedTest
    @EnumSource
    void tableWithoutAnyKeyIsRefused(Databases databases) {
        create(databases, "keyless");
        dropKey(databases, "keyless");
        assertRefused(builder(databases, "keyless"), "keyless", "no unique key");
    }

    @ParameterizedTest
    @EnumSource
    void tableOfMarksIsCheckedWhereItIsUsed(Databases databases) {
        create(databases, "half");
        widenKey(databases, "half_applied");
        assertRefused(builder(databases, "half").inTransaction(), "half_applied", "the unique key (id, expires_at)");
        assertWorks(builder(databases, "half"));
    }

    @ParameterizedTest
    @EnumSource
    void uniqueIndexOfTheIdIsEnough(Databases databases) {
        create(databases, "indexed");
        widenKey(databases, "indexed");
        databases.execute("CREATE UNIQUE INDEX indexed_id ON indexed (id)");
        assertWorks(builder(databases, "indexed"));
    }

    /** Each of two schemas may have a table of that name. */
    @ParameterizedTest
    @EnumSource
    void tableOfAnotherSchemaDoesNotCount(Databases databases) {
        databases.execute("CREATE SCHEMA IF NOT EXISTS Other");
        create(databases, "Other.twin");
        create(databases, "twin");
        widenKey(databases, "Other.twin");
        assertWorks(builder(databases, "twin"));
        assertRefused(builder(databases, "Other.twin"), "Other.twin", "the unique key (id, expires_at)");

        create(databases, "Other.pair");
        create(databases, "pair");
        widenKey(databases, "pair");
        assertWorks(builder(databases, "Other.pair"));
        assertRefused(builder(databases, "pair"), "pair", "the unique key (id, expires_at)");
    }

    @Test
    void tableIsFoundOnTheSearchPath() {
        Databases.POSTGRESQL.execute("CREATE SCHEMA first_of_path");
        Databases.POSTGRESQL.execute("CREATE SCHEMA second_of_path");
        create(Databases.POSTGRESQL, "second_of_path.searched");
        DataSource pool =
                new DriverManagerDataSource(Databases.POSTGRESQL.url() + "&currentSchema=first_of_path,second_of_path");
        assertWorks(JdbcIdempotenceStorage.builder(pool).table("searched"));

        widenKey(Databases.POSTGRESQL, "second_of_path.searched");
        assertRefused(
                JdbcIdempotenceStorage.builder(pool).table("Searched"), "Searched", "the unique key (id, expires_at)");
    }

    @Test
    void partialIndexDoesNotCount() {
        create(Databases.POSTGRESQL, "partly");
        dropKey(Databases.POSTGRESQL, "partly");
        Databases.POSTGRESQL.execute("CREATE UNIQUE INDEX partly_id ON partly (id) WHERE state = 'P'");
        assertRefused(builder(Databases.POSTGRESQL, "partly"), "partly", "no unique key");
    }

    @Test
    void partitionsByTheIdWork() {
        Databases.POSTGRESQL.execute("""
                CREATE TABLE parted (id VARCHAR(128) COLLATE "C" PRIMARY KEY, format SMALLINT, state CHAR(1),
                  taken_over SMALLINT, fence BIGINT, owner BYTEA, fingerprint BYTEA, lease_until BIGINT,
                  expires_at BIGINT, result BYTEA) PARTITION BY HASH (id)
                """);
        Databases.POSTGRESQL.execute(
                "CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0)");
        assertWorks(builder(Databases.POSTGRESQL, "parted"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"DATABASE_TO_UPPER=FALSE", "DATABASE_TO_LOWER=TRUE", "CASE_INSENSITIVE_IDENTIFIERS=TRUE"})
    void namesMayBeInAnyCase(String setting) throws Exception {
        DataSource pool = new DriverManagerDataSource(
                "jdbc:h2:mem:" + setting.replaceAll("\\W", "_") + ";DB_CLOSE_DELAY=-1;" + setting);
        assertWorks(JdbcIdempotenceStorage.builder(pool).table("Mixed_Case").createIfMissing());
        try (var connection = pool.getConnection();
                var statement = connection.createStatement()) {
            statement.execute("ALTER TABLE Mixed_Case DROP PRIMARY KEY");
        }
        assertRefused(JdbcIdempotenceStorage.builder(pool).table("Mixed_Case"), "Mixed_Case", "no unique key");
    }

    /** MariaDB's server of these tests knows no users. */
    @ParameterizedTest
    @EnumSource(names = {"POSTGRESQL", "MYSQL", "H2"})
    void rightsToReadAndWriteRowsAreEnough(Databases databases) {
        create(databases, "granted");
        create(databases, "granted_wide");
        widenKey(databases, "granted_wide");
        String user = databases == Databases.MYSQL ? "clerk@'%'" : "clerk";
        databases.execute(
                switch (databases) {
                    case POSTGRESQL -> "CREATE ROLE clerk LOGIN PASSWORD 'secret'";
                    case H2 -> "CREATE USER clerk PASSWORD 'secret'";
                    default -> "CREATE USER " + user + " IDENTIFIED BY 'secret'";
                });
        for (String table : List.of("granted", "granted_wide")) {
            databases.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON " + table + " TO " + user);
        }
        DataSource clerks = new DriverManagerDataSource(
                databases == Databases.H2
                        ? "jdbc:h2:mem:idem;USER=clerk;PASSWORD=secret"
                        : databases.url().replaceAll("user=\\w+", "user=clerk&password=secret"));

        assertWorks(JdbcIdempotenceStorage.builder(clerks).table("granted"));
        assertRefused(
                JdbcIdempotenceStorage.builder(clerks).table("granted_wide"),
                "granted_wide",
                "the unique key (id, expires_at)");
    }

    @ParameterizedTest
    @CsvSource({
        "MYSQL, databaseTerm=SCHEMA",
        "MYSQL, useInformationSchema=false",
        "MYSQL, defaultFetchSize=-2147483648",
        "MARIADB, useCatalogTerm=SCHEMA"
    })
    void settingsOfTheDriverDoNotMatter(Databases databases, String setting) {
        String table = "by_" + setting.replaceAll("\\W", "_");
        create(databases, table);
        DataSource pool = new DriverManagerDataSource(databases.url() + "&" + setting);
        assertWorks(JdbcIdempotenceStorage.builder(pool).table(table));
        widenKey(databases, table);
        assertRefused(JdbcIdempotenceStorage.builder(pool).table(table), table, "the unique key (id, expires_at)");
    }

    /** They may be right, and nobody can tell. */
    @ParameterizedTest
    @EnumSource
    void viewIsWarnedOf(Databases databases) {
        create(databases, "viewed");
        databases.execute("CREATE VIEW a_view AS SELECT * FROM viewed");
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class)) {
            builder(databases, "a_view").build().close();
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement()
                    .asString()
                    .contains("table a_view", "PRIMARY KEY (id)");
        }
    }

    @Test
    void databaseThatDoesNotListItsTablesIsWarnedOf() {
        create(Databases.MARIADB, "nameless");
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class)) {
            assertWorks(JdbcIdempotenceStorage.builder(
                            new DriverManagerDataSource(Databases.MARIADB.url() + "&blankTableNameMeta=true"))
                    .table("nameless"));
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement()
                    .asString()
                    .contains("table nameless", "PRIMARY KEY (id)");
        }
    }
}
