package io.idempotence.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.net.ssl.SSLException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The commands of the tool on a database. */
class OperatorOnDatabaseTest {
    private static final Duration HOUR = Duration.ofHours(1);

    private final String url = "jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1";
    private final DriverDataSource database = new DriverDataSource(url, "sa", "open-sesame");
    private final Map<String, String> environment =
            new HashMap<>(Map.of("IDEMPOTENCE_CLI_JDBC_PASSWORD", "open-sesame"));
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    private JdbcIdempotenceStorage storage;

    @BeforeEach
    void open() {
        storage = JdbcIdempotenceStorage.builder(database).createIfMissing().build();
    }

    @AfterEach
    void close() {
        storage.close();
        assertThat(text(out) + text(err)).doesNotContain("sesame");
    }

    @Test
    void findsListsResolvesCountsAndDeletes() {
        IdempotenceAdmin admin = IdempotenceAdmin.of(storage, "default");
        IdempotenceId id = new IdempotenceId("order-7");
        Claim claim = claim(storage, admin.requestKey(id, ""));
        storage.markUnknown(claim, HOUR);

        assertThat(run("list", "--unknown")).isZero();
        assertThat(text(out)).contains(claim.key().value());
        assertThat(run("find", "order-7")).isZero();
        assertThat(text(out)).contains("unknown");
        assertThat(run("resolve", "order-7", "--applied", "--yes")).isZero();
        assertThat(admin.find(claim.key()))
                .hasValueSatisfying(record -> assertThat(record.state()).isEqualTo(State.COMPLETED));
        assertThat(run("stats")).isZero();
        assertThat(text(out)).containsPattern("completed +1\n");
        assertThat(run("delete", "order-7", "--yes", "--force")).isZero();
        assertThat(admin.find(claim.key())).isEmpty();
    }

    /** What its transaction committed is completed, whatever its record shows. */
    @Test
    void seesAndDeletesTheMarksOfAServiceThatWorksInTransaction() throws Exception {
        JdbcIdempotenceStorage inTransaction =
                JdbcIdempotenceStorage.builder(database).inTransaction().build();
        IdempotenceAdmin admin = IdempotenceAdmin.of(inTransaction, "default");
        Claim claim = appliedAndUnknown(inTransaction);

        assertThat(run("find", "order-7")).isZero();
        assertThat(text(out)).contains("unknown");
        assertThat(run("find", "order-7", "--in-transaction")).isZero();
        assertThat(text(out)).contains("completed").doesNotContain("unknown");
        assertThat(run("list", "--unknown", "--in-transaction")).isZero();
        assertThat(text(out)).doesNotContain(claim.key().value());
        assertThat(run("resolve", "order-7", "--not-applied", "--yes", "--in-transaction"))
                .isNotZero();
        assertThat(admin.find(claim.key()))
                .hasValueSatisfying(record -> assertThat(record.state()).isEqualTo(State.COMPLETED));

        assertThat(run("delete", "order-7", "--yes", "--force", "--in-transaction"))
                .isZero();
        assertThat(admin.find(claim.key())).isEmpty();
        assertThat(claim(inTransaction, claim.key()).fence()).isEqualTo(1);
    }

    @Test
    void seesAndDeletesTheMarksInATableOfAnotherName() throws Exception {
        JdbcIdempotenceStorage renamed = JdbcIdempotenceStorage.builder(database)
                .table("other_record")
                .appliedTable("other_applied")
                .createIfMissing()
                .inTransaction()
                .build();
        Claim claim = appliedAndUnknown(renamed);

        assertThat(run("find", "order-7", "--jdbc-table", "other_record", "--jdbc-applied-table", "other_applied"))
                .isZero();
        assertThat(text(out)).contains("completed").doesNotContain("unknown");
        assertThat(run(
                        "delete",
                        "order-7",
                        "--yes",
                        "--force",
                        "--jdbc-table",
                        "other_record",
                        "--jdbc-applied-table",
                        "other_applied"))
                .isZero();
        assertThat(claim(renamed, claim.key()).fence()).isEqualTo(1);
    }

    @Test
    void reportsWhatIsWrongAndNoPassword() {
        assertThat(execute("stats", "--jdbc", "jdbc:nobody://host/db?password=sesame"))
                .isEqualTo(2);
        assertThat(text(err)).contains("driver");
        assertThat(execute("stats", "jdbc:h2:mem:x;PASSWORD=sesame")).isEqualTo(2);
        assertThat(execute("stats", "--jdbc", url, "--redis", "localhost:1")).isEqualTo(2);
        assertThat(execute("stats", "--jdbc", url, "--jdbc-user", "sa", "--jdbc-table", "other"))
                .isEqualTo(2);
        assertThat(text(err)).contains("missing");
        environment.put("IDEMPOTENCE_CLI_JDBC_PASSWORD", "wrong-sesame");
        assertThat(run("stats")).isEqualTo(3);
        assertThat(text(err)).contains("no connection: user or password refused (28000)");
    }

    @Test
    void reportsWhyPostgreSqlGivesNoConnection() throws Exception {
        try (EmbeddedPostgres postgres = EmbeddedPostgreSql.start()) {
            String server = postgres.getJdbcUrl("postgres", "postgres");
            assertThat(execute("stats", "--jdbc", server + "&sslmode=require")).isEqualTo(3);
            assertThat(text(err)).contains("has no TLS and was asked for it (08004)", "parameters of the URL");
            assertThat(execute("stats", "--jdbc", server)).isEqualTo(2);
            assertThat(text(err)).contains("table idempotence_record is missing or differs", "(42P01)");
            try (Connection connection = postgres.getPostgresDatabase().getConnection();
                    Statement sql = connection.createStatement()) {
                sql.execute("create role clerk login");
            }
            JdbcIdempotenceStorage.builder(postgres.getPostgresDatabase())
                    .createIfMissing()
                    .build()
                    .close();
            assertThat(execute("stats", "--jdbc", server.replace("user=postgres", "user=clerk")))
                    .isEqualTo(3);
            assertThat(text(err)).contains("the user lacks a right (42501)").doesNotContain("parameters of the URL");
        }
        assertThat(execute("stats", "--jdbc", "jdbc:postgresql://127.0.0.1:1/orders?ssl=false"))
                .isEqualTo(3);
        assertThat(text(err))
                .contains("nothing accepts connections at its address")
                .doesNotContain("parameters of the URL");
    }

    /** The tool hung, because the driver of PostgreSQL ignores the login timeout of the DriverManager. */
    @Test
    @Tag("all") // takes ten seconds
    @Timeout(300)
    void postgreSqlThatAcceptsAndNeverRespondsIsThree() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            assertThat(execute("stats", "--jdbc", "jdbc:postgresql://127.0.0.1:" + silent.getLocalPort() + "/orders"))
                    .isEqualTo(3);
            assertThat(text(err)).contains("cannot be used");
        }
    }

    static List<Arguments> failuresAndWhetherParametersMayBeWrong() {
        return List.of(
                arguments(new SQLException("TLS", "08000", -1, new SSLException("untrusted")), true),
                arguments(new SQLException("the server has no TLS", "08000", -1), true),
                arguments(new SQLException("no TLS or no password", "08004"), true),
                arguments(new SQLException("too many connections", "08004", 1040), false),
                arguments(new SQLException("host", "08000", -1, new UnknownHostException("db")), false),
                arguments(new SQLException("port", "08000", -1, new ConnectException("refused")), false),
                arguments(new SQLException("password", "28000", 1045), false));
    }

    /** Each failure of a URL with parameters was followed by the advice to check them. */
    @ParameterizedTest
    @MethodSource("failuresAndWhetherParametersMayBeWrong")
    void reportsTheParametersOfTheUrlWhereTheyMayBeWrong(SQLException failure, boolean mayBe) throws Exception {
        Driver driver = failing(failure);
        DriverManager.registerDriver(driver);
        try {
            assertThat(execute("stats", "--jdbc", "jdbc:failing:db?ssl=sesame")).isEqualTo(3);
            assertThat(text(err).contains("check the parameters of the URL")).isEqualTo(mayBe);
        } finally {
            DriverManager.deregisterDriver(driver);
        }
    }

    /** The JVM ended with 1, which means that there is no record. */
    @Test
    void driverThatLacksAClassIsThree() throws Exception {
        Driver incomplete = failing(new NoClassDefFoundError("com/example/Codec"));
        DriverManager.registerDriver(incomplete);
        try {
            assertThat(execute("find", "order-7", "--jdbc", "jdbc:failing:db")).isEqualTo(3);
            assertThat(text(err)).contains("com/example/Codec");
        } finally {
            DriverManager.deregisterDriver(incomplete);
        }
    }

    private static Driver failing(Throwable failure) {
        return (Driver) Proxy.newProxyInstance(
                OperatorOnDatabaseTest.class.getClassLoader(), new Class<?>[] {Driver.class}, (self, method, args) -> {
                    switch (method.getName()) {
                        case "connect" -> throw failure;
                        case "acceptsURL" -> {
                            return String.valueOf(args[0]).startsWith("jdbc:failing:");
                        }
                        case "equals" -> {
                            return self == args[0];
                        }
                        default -> {
                            return method.getReturnType() == String.class ? "failing" : 0;
                        }
                    }
                });
    }

    /** What the transaction of {@code order-7} did is committed, and its record shows that nobody knows. */
    private Claim appliedAndUnknown(JdbcIdempotenceStorage inTransaction) throws Exception {
        StorageKey key = IdempotenceAdmin.of(inTransaction, "default").requestKey(new IdempotenceId("order-7"), "");
        Claim claim = claim(inTransaction, key);
        try (Connection business = database.getConnection()) {
            business.setAutoCommit(false);
            inTransaction.markApplied(business, claim);
            business.commit();
        }
        inTransaction.markUnknown(claim, HOUR);
        return claim;
    }

    private static Claim claim(JdbcIdempotenceStorage storage, StorageKey key) {
        return ((ClaimResult.Claimed) storage.claim(
                        new ClaimRequest(key, Fingerprint.NONE, Owner.random(new SecureRandom()), HOUR, HOUR, false)))
                .claim();
    }

    private int run(String... args) {
        String[] all = Arrays.copyOf(args, args.length + 4);
        System.arraycopy(new String[] {"--jdbc", url, "--jdbc-user", "sa"}, 0, all, args.length, 4);
        return execute(all);
    }

    private int execute(String... args) {
        out.reset();
        err.reset();
        PrintStream stderr = new PrintStream(err, true, StandardCharsets.UTF_8);
        return OperatorTool.run(out, stderr, Terminal.system(), environment, args);
    }

    private static String text(ByteArrayOutputStream bytes) {
        return bytes.toString(StandardCharsets.UTF_8);
    }
}
