package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.spi.ILoggingEvent;
import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.storage.AtOnce;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The tables: their set-up, the cost of calls, the clock, the cleanup, and the work of operators. */
class JdbcTablesTest {
    private static JdbcIdempotenceStorage storage(Databases databases) {
        return databases.storage().createIfMissing().build();
    }

    // ---- set-up

    @Test
    void unknownDatabaseIsRefusedWithThoseThatWork() {
        assertThatThrownBy(() -> JdbcIdempotenceStorage.builder(new SpyDataSource(Databases.H2.pool(), "Oracle"))
                        .build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("Oracle")
                .hasMessageContaining("PostgreSQL 10, MySQL 8, MariaDB 10.5, H2 2");
    }

    @ParameterizedTest
    @EnumSource
    void missingTableIsNoticedAtOnceAndTheSchemaFileNamed(Databases databases) {
        DataSource pool = databases.pool();
        assertThatThrownBy(() -> JdbcIdempotenceStorage.builder(pool)
                        .table("no_such_table")
                        .build())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("table no_such_table is missing or differs from the schema file (")
                .hasMessageContaining(databases.dialect.schemaFile);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "1a", "a b", "a;DROP TABLE b", "a--", "a.b.c", "\"a\"", "a'", "äöü", "a.", ".a", "a\n", "a)"
            })
    void tableNameThatIsNoIdentifierIsRefused(String name) {
        JdbcIdempotenceStorage.Builder builder = JdbcIdempotenceStorage.builder(Databases.H2.pool());
        assertThatThrownBy(() -> builder.table(name)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> builder.appliedTable(name)).isInstanceOf(IllegalArgumentException.class);
    }

    @ParameterizedTest
    @EnumSource
    void fourInstancesCreateTheTablesAtOnce(Databases databases) throws Exception {
        DataSource pool = databases.pool();
        for (int round = 0; round < 3; round++) {
            String table = "made_" + round;
            List<JdbcIdempotenceStorage> made = AtOnce.run(
                    4,
                    () -> JdbcIdempotenceStorage.builder(pool)
                            .table(table)
                            .appliedTable(table + "_applied")
                            .inTransaction()
                            .createIfMissing()
                            .statementTimeout(Duration.ofSeconds(10))
                            .build());
            StorageKey key = Claims.newKey();
            assertThat(Claims.claim(made.get(0), key).fence()).isEqualTo(1);
            assertThat(made.get(3).claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        }
    }

    @ParameterizedTest
    @EnumSource
    void tablesMayLiveInASchemaOfTheirOwn(Databases databases) {
        databases.execute("CREATE SCHEMA IF NOT EXISTS apart");
        JdbcIdempotenceStorage storage = databases
                .storage()
                .table("apart.record")
                .appliedTable("apart.applied")
                .createIfMissing()
                .inTransaction()
                .build();
        StorageKey key = Claims.newKey();
        Claims.claim(storage, key);

        assertThat(databases.number("SELECT COUNT(*) FROM apart.record WHERE id = '" + key.value() + "'"))
                .isEqualTo(1);
    }

    // ---- cost

    @ParameterizedTest
    @CsvSource({
        "POSTGRESQL,false,1,2", "POSTGRESQL,true,1,2",
        "MARIADB,false,1,2", "MARIADB,true,2,1",
        "MYSQL,false,1,2", "MYSQL,true,2,1",
        "H2,false,1,2", "H2,true,2,1"
    })
    void statementsPerCallAreThoseOfTheDocumentation(
            Databases databases, boolean inTransaction, int firstClaim, int otherClaim) {
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage.Builder builder = Databases.storage(spy).createIfMissing();
        JdbcIdempotenceStorage storage = (inTransaction ? builder.inTransaction() : builder).build();
        StorageKey key = Claims.newKey();
        spy.executed.set(0);
        Claim claim = Claims.claim(storage, key);
        assertThat(spy.executed.getAndSet(0)).as("first claim").isEqualTo(firstClaim);
        storage.claim(Claims.request(key));
        assertThat(spy.executed.getAndSet(0)).as("duplicate").isEqualTo(otherClaim);
        storage.renew(claim, Claims.LEASE);
        assertThat(spy.executed.getAndSet(0)).as("renew").isEqualTo(1);
        storage.complete(claim, new byte[1], Claims.RETENTION);
        assertThat(spy.executed.getAndSet(0)).as("complete").isEqualTo(1);
        storage.claim(Claims.request(key));
        assertThat(spy.executed.getAndSet(0)).as("replay").isEqualTo(otherClaim);
        storage.find(key);
        assertThat(spy.executed.getAndSet(0)).as("find").isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void startThatFindsItsTablesReadsEachOnce(Databases databases) {
        SpyDataSource spy = new SpyDataSource(databases.pool());
        storage(databases).close();
        int each = databases == Databases.POSTGRESQL ? 2 : 1;

        Databases.storage(spy).createIfMissing().build().close();
        assertThat(spy.executed.getAndSet(0)).isEqualTo(each);
        Databases.storage(spy).createIfMissing().inTransaction().build().close();
        assertThat(spy.executed.get()).isEqualTo(2 * each);
    }

    // ---- clock

    @Test
    void clockOfTheDatabaseDecides() {
        JdbcIdempotenceStorage storage = storage(Databases.MARIADB);
        StorageKey key = Claims.newKey();
        Claims.claim(storage, key);
        try (HikariDataSource hourAhead = Databases.MARIADB.newPool(config -> {
            config.setConnectionInitSql("SET timestamp = UNIX_TIMESTAMP() + 1800");
        })) {
            JdbcIdempotenceStorage ahead = Databases.storage(hourAhead).build();
            assertThat(ahead.claim(Claims.request(key))).isInstanceOf(ClaimResult.Abandoned.class);
        }
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
    }

    @Test
    void timeZoneOfTheSessionChangesNothing() {
        JdbcIdempotenceStorage storage = storage(Databases.MARIADB);
        StorageKey key = Claims.newKey();
        Claims.claim(storage, key);
        try (HikariDataSource elsewhere = Databases.MARIADB.newPool(config -> {
            config.setConnectionInitSql("SET time_zone = '+09:00'");
        })) {
            assertThat(Databases.storage(elsewhere).build().claim(Claims.request(key)))
                    .isInstanceOfSatisfying(
                            ClaimResult.InProgress.class,
                            inProgress -> assertThat(inProgress.leaseLeft())
                                    .isBetween(Claims.LEASE.minusMinutes(1), Claims.LEASE));
        }
    }

    // ---- cleanup

    @ParameterizedTest
    @EnumSource
    void fourInstancesCleanUpAtOnceAndTakeOnlyWhatIsExpired(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = databases
                .storage()
                .table("cleaned")
                .appliedTable("cleaned_applied")
                .createIfMissing()
                .build();
        Duration brief = Duration.ofMillis(50);
        for (int i = 0; i < 200; i++) {
            storage.claim(new ClaimRequest(Claims.newKey(), Fingerprint.NONE, new Owner(i, i), brief, brief, false));
        }
        StorageKey alive = Claims.newKey();
        Claims.claim(storage, alive);
        databases.letPass(brief);
        assertThat(storage.deleteExpired(10)).isEqualTo(10);

        List<Integer> deleted = AtOnce.run(4, () -> {
            int sum = 0;
            int batch = 1;
            // Rows that another instance has locked are skipped: look again until all are gone.
            while (batch > 0 || databases.number("SELECT COUNT(*) FROM cleaned") > 1) {
                batch = storage.deleteExpired(25);
                assertThat(batch).isLessThanOrEqualTo(25);
                sum += batch;
                claimAndForget(storage);
            }
            return sum;
        });

        assertThat(deleted.stream().mapToInt(Integer::intValue).sum()).isEqualTo(190);
        assertThat(storage.claim(Claims.request(alive))).isInstanceOf(ClaimResult.InProgress.class);
    }

    /** A claim among the cleanups, taken back at once. */
    private static void claimAndForget(JdbcIdempotenceStorage storage) {
        StorageKey key = Claims.newKey();
        Claims.claim(storage, key);
        storage.delete(key);
    }

    @Test
    void cleanupRunsByItselfAndEndsWithTheStorage() {
        Set<Thread> before = cleaners();
        JdbcIdempotenceStorage storage = swept(Databases.H2.pool());
        claimBriefly(storage);

        Awaitility.await().until(() -> Databases.H2.number("SELECT COUNT(*) FROM swept") == 0);
        Set<Thread> started = cleanersSince(before);
        assertThat(started).hasSize(1).allMatch(Thread::isDaemon);
        storage.close();
        storage.close();
        Awaitility.await().until(() -> started.stream().noneMatch(Thread::isAlive));
    }

    @Test
    void expiredRowsAreDeletedByDefaultAndNotWhereItIsTurnedOff() {
        Set<Thread> before = cleaners();
        try (JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(Databases.H2.pool())
                .createIfMissing()
                .statementTimeout(Duration.ofSeconds(20))
                .build()) {
            assertThat(storage).isNotNull();
            assertThat(cleanersSince(before)).hasSize(1);
        }
        Awaitility.await().until(() -> cleanersSince(before).isEmpty());
        try (JdbcIdempotenceStorage storage = Databases.storage(Databases.H2.pool())
                .createIfMissing()
                .cleanUpEvery(Duration.ZERO)
                .build()) {
            assertThat(storage).isNotNull();
            assertThat(cleanersSince(before)).isEmpty();
        }
    }

    /** More than a batch, while others claim: the next batch comes soon, not an interval later. */
    @ParameterizedTest
    @EnumSource
    void backlogOfExpiredRowsIsDeletedBatchByBatchByTwoInstances(Databases databases) throws Exception {
        String table = "backlog";
        try (JdbcIdempotenceStorage first = backlog(databases, table);
                JdbcIdempotenceStorage second = backlog(databases, table)) {
            try (Connection connection = databases.pool().getConnection();
                    PreparedStatement insert = connection.prepareStatement("INSERT INTO " + table
                            + " (id, format, state, taken_over, fence, owner, fingerprint, lease_until, expires_at)"
                            + " VALUES (?, 1, 'P', 0, 1, ?, ?, 0, 1)")) {
                for (int i = 0; i < 3_500; i++) {
                    insert.setString(1, "expired-" + i);
                    insert.setBytes(2, new byte[16]);
                    insert.setBytes(3, new byte[32]);
                    insert.addBatch();
                }
                insert.executeBatch();
            }
            List<StorageKey> alive = new ArrayList<>();
            Awaitility.await().until(() -> {
                StorageKey key = Claims.newKey();
                Claims.claim(alive.size() % 2 == 0 ? first : second, key);
                alive.add(key);
                return databases.number("SELECT COUNT(*) FROM " + table + " WHERE expires_at = 1") == 0;
            });
            assertThat(alive).allMatch(key -> first.find(key).isPresent());
        }
    }

    private static JdbcIdempotenceStorage backlog(Databases databases, String table) {
        return databases
                .storage()
                .table(table)
                .appliedTable(table + "_applied")
                .createIfMissing()
                .cleanUpEvery(Duration.ofSeconds(1))
                .build();
    }

    /** A driver whose classes do not fit together throws no exception. */
    @Test
    void cleanupOutlivesAnErrorOfTheDriverAndLogsIt() {
        SpyDataSource database = new SpyDataSource(Databases.H2.pool());
        try (JdbcIdempotenceStorage storage = swept(database);
                CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class)) {
            claimBriefly(storage);
            database.failNext(new NoClassDefFoundError("org/h2/Missing"));

            // A cleanup may have deleted the record before.
            Awaitility.await()
                    .until(() -> !log.warnings().isEmpty() && Databases.H2.number("SELECT COUNT(*) FROM swept") == 0);
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement(InstanceOfAssertFactories.STRING)
                    .startsWith("expired records could not be deleted; a batch of half the size follows");
        }
    }

    private static JdbcIdempotenceStorage swept(DataSource database) {
        return Databases.storage(database)
                .table("swept")
                .appliedTable("swept_applied")
                .createIfMissing()
                .cleanUpEvery(Duration.ofSeconds(1))
                .build();
    }

    private static void claimBriefly(JdbcIdempotenceStorage storage) {
        Duration brief = Duration.ofMillis(50);
        storage.claim(new ClaimRequest(Claims.newKey(), Fingerprint.NONE, new Owner(1, 1), brief, brief, false));
    }

    /** Others may end meanwhile: those of storages that other tests have left. */
    private static Set<Thread> cleanersSince(Set<Thread> before) {
        Set<Thread> since = cleaners();
        since.removeAll(before);
        return since;
    }

    private static Set<Thread> cleaners() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("idempotence-cleanup"))
                .collect(Collectors.toSet());
    }

    // ---- operators

    @ParameterizedTest
    @EnumSource
    void listReadsAsFarAsItIsConsumedAndHoldsNoConnection(Databases databases) {
        String namespace = "list-" + databases.name();
        JdbcIdempotenceStorage writer = storage(databases);
        for (int i = 0; i < 450; i++) {
            Claims.claim(writer, Claims.newKey(namespace));
        }
        Claims.claim(writer, Claims.newKey(namespace + "2"));
        Claims.claim(writer, Claims.newKey(namespace.toLowerCase(Locale.ROOT)));
        try (HikariDataSource one = databases.newPool(config -> {
            config.setMaximumPoolSize(1);
            config.setConnectionTimeout(500);
        })) {
            SpyDataSource spy = new SpyDataSource(one);
            JdbcIdempotenceStorage storage = Databases.storage(spy).build();

            spy.executed.set(0);
            Iterator<IdempotenceRecord> left = storage.list(namespace).iterator();
            assertThat(storage.find(left.next().key())).isPresent();
            assertThat(spy.executed.getAndSet(0)).as("one page and one find").isEqualTo(2);

            assertThat(storage.list(namespace).map(IdempotenceRecord::key))
                    .hasSize(450)
                    .doesNotHaveDuplicates();
            assertThat(spy.executed.get()).as("pages").isEqualTo(3);
        }
    }

    @ParameterizedTest
    @EnumSource
    void onlyUnknownAndAbandonedRecordsAreResolvedAndOnlyOnce(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        StorageKey key = Claims.newKey();
        Claim claim = Claims.claim(storage, key);
        assertThat(storage.resolve(key, 1, Resolution.APPLIED, Claims.RETENTION))
                .isFalse();
        storage.markUnknown(claim, Claims.RETENTION);
        assertThat(storage.resolve(key, 2, Resolution.APPLIED, Claims.RETENTION))
                .isFalse();

        List<Boolean> resolved = AtOnce.run(4, () -> storage.resolve(key, 1, Resolution.NOT_APPLIED, Claims.RETENTION));
        assertThat(resolved).containsOnlyOnce(true);
        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.RELEASED);

        StorageKey second = Claims.newKey();
        Claims.claim(storage, second, Claims.SHORT);
        databases.letPass(Claims.SHORT);
        assertThat(storage.resolve(second, 1, Resolution.APPLIED, Claims.RETENTION))
                .isTrue();
        assertThat(((ClaimResult.Completed) storage.claim(Claims.request(second))).result())
                .isEqualTo(ClaimResult.noResult());
        assertThat(storage.resolve(Claims.newKey(), 1, Resolution.APPLIED, Claims.RETENTION))
                .isFalse();
    }
}
