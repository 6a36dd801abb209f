package io.idempotence.cli;

import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import java.net.URI;
import java.net.URISyntaxException;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;
import redis.clients.jedis.DefaultJedisClientConfig;

/** The options that select the storage and its user. */
final class StorageOptions {
    /**
     * The prefix of this tool's variables. No other program uses it, so that the tool's settings do not affect a service on the same host.
     */
    private static final String PREFIX = "IDEMPOTENCE_CLI_";

    private static final String REDIS = PREFIX + "REDIS";
    private static final String REDIS_PASSWORD = PREFIX + "REDIS_PASSWORD";

    private static final String JDBC = PREFIX + "JDBC";
    private static final String JDBC_PASSWORD = PREFIX + "JDBC_PASSWORD";
    private static final List<String> VARIABLES = List.of(REDIS, REDIS_PASSWORD, JDBC, JDBC_PASSWORD);

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(2);
    private static final Duration REPLY_TIMEOUT = Duration.ofSeconds(5);

    @Option(
            scope = ScopeType.INHERIT,
            names = "--redis",
            paramLabel = "<where>",
            description =
                    "One server: host:port. A Cluster: 'host:port;host:port', quoted. Or a redis:// or rediss:// URI."
                            + " Default: the variable " + REDIS + ". A password goes into " + REDIS_PASSWORD
                            + " or into the URI in " + REDIS + ", where no process list shows it.")
    private @Nullable String redis;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--redis-user",
            paramLabel = "<name>",
            description = "The Redis user, unless the URI has one.")
    private @Nullable String redisUser;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--sentinel",
            paramLabel = "<primary>",
            description = "The name of the primary in the Sentinels whose addresses --redis gives.")
    private @Nullable String sentinel;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--jdbc",
            paramLabel = "<url>",
            description = "A database instead of Redis: its JDBC URL. Default: the variable " + JDBC
                    + ", unless Redis is named. The password goes into " + JDBC_PASSWORD
                    + ". The drivers of PostgreSQL and MariaDB are built in.")
    private @Nullable String jdbc;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--jdbc-user",
            paramLabel = "<name>",
            description = "The database user, unless the URL has one.")
    private @Nullable String jdbcUser;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--jdbc-table",
            paramLabel = "<table>",
            description = "The table of the records. Default: idempotence_record.")
    private @Nullable String jdbcTable;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--in-transaction",
            description = "The service uses the database in in-transaction mode.")
    private boolean inTransaction;

    @Option(
            scope = ScopeType.INHERIT,
            names = "--jdbc-applied-table",
            paramLabel = "<table>",
            description =
                    "The table of the applied executions; implies --in-transaction. Default: idempotence_applied.")
    private @Nullable String jdbcAppliedTable;

    /**
     * Opens the storage.
     *
     * @throws IllegalArgumentException if the options are wrong; the message contains no password
     */
    IdempotenceStorage open(Map<String, String> environment) {
        for (String name : new TreeSet<>(environment.keySet())) {
            if (name.startsWith(PREFIX) && !VARIABLES.contains(name)) {
                throw new IllegalArgumentException("the variable " + name + " is unknown; known are " + VARIABLES);
            }
        }
        String where = redis;
        String url = jdbc;
        if (where == null && url == null) {
            where = environment.get(REDIS);
            url = environment.get(JDBC);
        }
        if (where != null && url != null) {
            throw new IllegalArgumentException("both --redis (or " + REDIS + ") and --jdbc (or " + JDBC
                    + ") are given, and the records are in one storage: give one of them");
        }
        checkOthers(url != null);
        if (url != null) {
            return database(url, environment.get(JDBC_PASSWORD));
        }
        if (where == null || where.isBlank()) {
            throw new IllegalArgumentException(
                    "no storage is given: add --redis host:port or --jdbc URL, or set the variable " + REDIS + " or "
                            + JDBC);
        }
        String password = environment.get(REDIS_PASSWORD);
        RedisIdempotenceStorage.Builder builder =
                where.contains("://") ? ofUri(where, password) : ofAddresses(where, password);
        if (sentinel != null) {
            builder.sentinel(sentinel);
        }
        return builder.build();
    }

    /** An option of the other storage would be ignored, and the tool might look into the wrong one. */
    private void checkOthers(boolean isDatabase) {
        boolean ofRedis = redisUser != null || sentinel != null;
        boolean ofDatabase = jdbcUser != null || jdbcTable != null || jdbcAppliedTable != null || inTransaction;
        if (isDatabase && ofRedis) {
            throw new IllegalArgumentException(
                    "--redis-user and --sentinel are for Redis, but the storage is a database (--jdbc or " + JDBC
                            + ")");
        }
        if (!isDatabase && ofDatabase) {
            throw new IllegalArgumentException(
                    "--jdbc-user, --jdbc-table, --jdbc-applied-table and --in-transaction are for a database: add --jdbc URL or set "
                            + JDBC + ", and leave out --redis and " + REDIS);
        }
    }

    private IdempotenceStorage database(String url, @Nullable String password) {
        try {
            DriverManager.getDriver(url);
        } catch (SQLException e) {
            throw new IllegalArgumentException(
                    "no driver accepts the URL of --jdbc; built in are jdbc:postgresql: and jdbc:mariadb:. For another database run"
                            + " java -cp idempotence.jar:driver.jar io.idempotence.cli.OperatorTool");
        }
        JdbcIdempotenceStorage.Builder builder = JdbcIdempotenceStorage.builder(
                        new DriverDataSource(url, jdbcUser, password))
                .cleanUpEvery(Duration.ZERO);
        if (jdbcTable != null) {
            builder.table(jdbcTable);
        }
        if (jdbcAppliedTable != null) {
            builder.appliedTable(jdbcAppliedTable);
        }
        if (inTransaction || jdbcAppliedTable != null) {
            builder.inTransaction();
        }
        try {
            return builder.build();
        } catch (StorageUnavailableException e) {
            throw new StorageUnavailableException(withoutParameters(url) + " cannot be used: " + e.getMessage(), e);
        } catch (IllegalStateException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /** Removes the parameters of a URL, which may contain a password. */
    private static String withoutParameters(String url) {
        return url.replaceFirst("[?;].*", "");
    }

    private RedisIdempotenceStorage.Builder ofAddresses(String addresses, @Nullable String password) {
        DefaultJedisClientConfig.Builder client = DefaultJedisClientConfig.builder();
        checkPassword(redisUser, password);
        if (redisUser != null) {
            client.user(redisUser);
        }
        if (password != null) {
            client.password(password);
        }
        return RedisIdempotenceStorage.builder(addresses)
                .client(client.build())
                .timeouts(CONNECT_TIMEOUT, REPLY_TIMEOUT);
    }

    /** The driver would ignore a user without a password, and act as the default user. */
    private static void checkPassword(@Nullable String user, @Nullable String password) {
        if (user != null && password == null) {
            throw new IllegalArgumentException(
                    "the Redis user has no password; put it into the variable " + REDIS_PASSWORD);
        }
    }

    private RedisIdempotenceStorage.Builder ofUri(String text, @Nullable String password) {
        try {
            URI uri = new URI(text);
            String[] inUri = Objects.requireNonNullElse(uri.getUserInfo(), "").split(":", 2);
            String secret = inUri.length == 2 ? inUri[1] : password;
            String user = inUri[0].isEmpty() ? redisUser : inUri[0];
            checkPassword(user, secret);
            if (secret != null && uri.getHost() != null) {
                uri = new URI(
                        uri.getScheme(),
                        Objects.requireNonNullElse(user, "") + ":" + secret,
                        uri.getHost(),
                        uri.getPort(),
                        uri.getPath(),
                        uri.getQuery(),
                        uri.getFragment());
            }
            return RedisIdempotenceStorage.builder(uri).timeouts(CONNECT_TIMEOUT, REPLY_TIMEOUT);
        } catch (URISyntaxException e) {
            // The exception's own message repeats the password.
            throw new IllegalArgumentException(
                    "--redis is not a URI; percent-encode reserved characters of the password, or put it into the variable "
                            + REDIS_PASSWORD);
        }
    }
}
