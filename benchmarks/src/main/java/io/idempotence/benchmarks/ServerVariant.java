package io.idempotence.benchmarks;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Completion;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import jakarta.servlet.ServletContext;
import java.time.Clock;
import java.time.Duration;
import java.util.function.Consumer;
import javax.sql.DataSource;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;

/** The ways to serve the same request that are compared. A new one is one more constant. */
enum ServerVariant {
    BARE("bare handler", Comparison.FIRST_REQUESTS, at -> context -> {}),
    FLOOR("floor", 0, ServerVariant::behindTwoCommands),
    REDIS("ours on Redis", 1.00, at -> onRedis(at, IdempotencePolicy.defaults())),
    REDIS_AFTER("ours on Redis, after response", 1.15, at -> onRedis(at, afterResponse())),
    MEMORY("ours in memory", Comparison.FIRST_REQUESTS, ServerVariant::inMemory),
    STATEMENTS("two raw statements", Comparison.DATABASE, ServerVariant::behindTwoStatements),
    POSTGRESQL(
            "ours on PostgreSQL", Comparison.FIRST_REQUESTS, at -> onPostgreSql(at, "", IdempotencePolicy.defaults())),
    GET("one raw GET", Comparison.REPLAYS, at -> PaymentServer.behind(RawFilter.oneGet(client(at)))),
    REPLAY("ours, replay", Comparison.REPLAYS, at -> onRedis(at, IdempotencePolicy.defaults())),
    POSTGRESQL_AFTER("ours, after response", Comparison.DATABASE, at -> onPostgreSql(at, "", afterResponse())),
    POSTGRESQL_ASYNC(
            "ours, synchronous_commit off",
            Comparison.DATABASE,
            at -> onPostgreSql(at, "&options=-c%20synchronous_commit=off", IdempotencePolicy.defaults()));

    /** The comparison to which a variant belongs. */
    enum Comparison {
        FIRST_REQUESTS,
        REPLAYS,
        DATABASE
    }

    /**
     * The surroundings of the application of a variant.
     *
     * @param redis directly or behind a slow network
     * @param jdbcUrl of PostgreSQL, or empty
     * @param resources closes what the application needs
     */
    record Surroundings(HostAndPort redis, String jdbcUrl, Resources resources) {}

    /** The set-up of the application of a variant. */
    @FunctionalInterface
    private interface SetUp {
        Consumer<ServletContext> in(Surroundings surroundings) throws Exception;
    }

    /** A database's connections for each variant. */
    private static final int CONNECTIONS = 16;

    /** Half of the heap: room for the records of a retention even on a faster machine. */
    private static final long MAX_BYTES = 512L * 1024 * 1024;

    final String title;
    final Comparison comparison;
    /** Whether it is measured over slow networks to Redis, too. */
    final boolean overNetworks;
    /** Requests per second divided by the floor's that it should reach; 0 for any. */
    final double target;

    private final SetUp setUp;

    /** First requests on Redis. */
    ServerVariant(String title, double target, SetUp setUp) {
        this.title = title;
        this.comparison = Comparison.FIRST_REQUESTS;
        this.overNetworks = true;
        this.target = target;
        this.setUp = setUp;
    }

    ServerVariant(String title, Comparison comparison, SetUp setUp) {
        this.title = title;
        this.comparison = comparison;
        this.overNetworks = false;
        this.target = 0;
        this.setUp = setUp;
    }

    Consumer<ServletContext> application(Surroundings surroundings) throws Exception {
        return setUp.in(surroundings);
    }

    boolean needsDatabase() {
        return this == POSTGRESQL || comparison == Comparison.DATABASE;
    }

    private static RedisClient client(Surroundings at) {
        return at.resources.add(Redis.client(at.redis));
    }

    private static Consumer<ServletContext> behindTwoCommands(Surroundings at) {
        return PaymentServer.behind(RawFilter.twoCommands(client(at)));
    }

    private static Consumer<ServletContext> onRedis(Surroundings at, IdempotencePolicy policy) {
        return protectedBy(RedisIdempotenceStorage.connect(at.redis.toString()), policy, at);
    }

    private static IdempotencePolicy afterResponse() {
        return IdempotencePolicy.builder().completion(Completion.AFTER_RESPONSE).build();
    }

    /** With a short retention: the records of a whole measurement would cost the garbage collector more than ours does. */
    private static Consumer<ServletContext> inMemory(Surroundings at) {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .lease(Duration.ofSeconds(5))
                .retention(Duration.ofSeconds(5))
                .build();
        return protectedBy(IdempotenceStorage.inMemory(Integer.MAX_VALUE, MAX_BYTES, Clock.systemUTC()), policy, at);
    }

    private static Consumer<ServletContext> onPostgreSql(Surroundings at, String options, IdempotencePolicy policy) {
        JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(pool(at, at.jdbcUrl + options))
                .createIfMissing()
                .build();
        return protectedBy(storage, policy, at);
    }

    private static Consumer<ServletContext> behindTwoStatements(Surroundings at) throws Exception {
        return PaymentServer.behind(RawFilter.twoStatements(pool(at, at.jdbcUrl)));
    }

    private static DataSource pool(Surroundings at, String jdbcUrl) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(jdbcUrl);
        config.setMaximumPoolSize(CONNECTIONS);
        config.setConnectionTimeout(5_000);
        return at.resources.add(new HikariDataSource(config));
    }

    private static Consumer<ServletContext> protectedBy(
            IdempotenceStorage storage, IdempotencePolicy policy, Surroundings at) {
        Idempotence idempotence = at.resources.add(Idempotence.over(storage));
        return context ->
                IdempotenceFilter.builder(idempotence).policy(policy).build().install(context);
    }
}
