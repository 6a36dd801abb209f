package io.idempotence.server.redis;

import io.idempotence.internal.OptionalDependency;
import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.jedis.JedisClientRedis;
import io.idempotence.server.redis.internal.jedis.RedisAddresses;
import io.idempotence.server.redis.internal.jedis.RedisConnector;
import io.idempotence.server.redis.internal.jedis.RedisUri;
import io.idempotence.server.redis.internal.jedis.ReplicaWait;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import java.net.URI;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/**
 * A storage in Redis 6.2 or later: a single server, a primary behind Sentinels, or a Redis Cluster. It works with Jedis 6.0, 7.0 and 8.0,
 * an optional dependency that the application adds, and through {@link #over} with any driver. Thread-safe, also for virtual threads. It
 * starts no threads besides the driver's own: those of its connection pools and, with {@link Builder#sentinel}, one that listens to each
 * Sentinel.
 *
 * <p><b>Records.</b> One key per ID, a binary string. Its time to live is the retention and gives the age of a claim, so never change it
 * by hand while a claim may run. Each call is one script on that key: one round trip, or two if the server does not have the script yet.
 * All times are the server's. A completed record costs about 190 bytes of the server's memory besides the result.
 *
 * <p><b>Guarantees.</b> Promise P2 holds as long as the primary keeps its data. An asynchronous failover, an eviction or a restart
 * without persistence can lose a claim. Run Redis with {@code maxmemory-policy noeviction} and {@code appendonly yes}. A server out of
 * memory refuses new claims (P6) but still records completions.
 *
 * <p><b>Failures.</b> Every method throws {@link StorageUnavailableException} for any failure of Redis or the driver: no connection, no
 * reply in time, no free connection in the pool, {@code OOM}, {@code READONLY}, {@code LOADING}, {@code CLUSTERDOWN}, missing rights. Its
 * {@link StorageUnavailableException#nothingWritten()} is true if the call was never sent, or if Redis replied with an error. A thread
 * that is interrupted while it waits for a connection keeps its interrupt flag. Messages contain neither keys nor passwords.
 *
 * <p><b>Failover.</b> A server that replies {@code READONLY}, {@code MASTERDOWN}, {@code LOADING} or {@code NOREPLICAS} may have been
 * replaced behind its address. Older connections are not used again, and the call is sent once more on a new one.
 *
 * <p><b>Rights.</b> A Redis user needs the keys {@code ~idem:*} and the commands {@code evalsha eval get getrange exists set pexpire pttl
 * del ping echo}. In addition: {@code select} for a database other than 0; {@code cluster asking} in a Cluster; {@code wait} with {@link
 * Builder#waitForReplicas}; {@code info} with {@link Builder#strict}, and for warnings about the server's set-up. An operator's user also
 * needs {@code scan}, and in a Cluster with replicas {@code info}, because otherwise each replica lists the records again. A missing right
 * fails {@link Builder#build}.
 *
 * <p><b>Concurrent calls</b> on connections opened here share round trips. If a connection fails, each of the calls that were sent together
 * on it may have been executed.
 *
 * <p><b>Defaults</b> of the clients opened here: connect within 500 ms, reply within 1 s, wait 500 ms for a free connection, at most 64
 * connections per server. In a Cluster, a command is sent at most 3 times within 2 s.
 */
public final class RedisIdempotenceStorage extends RedisRecords {
    private RedisIdempotenceStorage(Redis redis, Duration replicasMayTake) {
        super(redis, replicasMayTake);
    }

    /**
     * Connects with the defaults of this class.
     *
     * @param addresses {@code host:port} for a single server, {@code host:port;host:port} for the seeds of a Redis Cluster; an
     *     IPv6 address in brackets. A single address that turns out to be a Cluster node is used as the only seed
     * @return a storage that owns its connections
     * @throws IllegalArgumentException if {@code addresses} is malformed; the message contains the address, the fault and the fix
     * @throws IllegalStateException if Jedis is not on the class path
     * @throws StorageUnavailableException if Redis does not respond there, or a check fails; everything opened is closed again
     */
    public static RedisIdempotenceStorage connect(String addresses) {
        return builder(addresses).build();
    }

    /**
     * Connects to {@code redis://[[user]:password@]host[:port][/database]}, with TLS if the scheme is {@code rediss}; then the server's
     * certificate must be trusted by the JVM and name the host. The port is 6379 if there is none.
     *
     * @param uri address, user and password; never part of a message
     * @return a storage that owns its connections
     * @throws IllegalArgumentException if {@code uri} is not of this form
     * @throws IllegalStateException if Jedis is not on the class path
     * @throws StorageUnavailableException if Redis does not respond there, or a check fails; everything opened is closed again
     */
    public static RedisIdempotenceStorage connect(URI uri) {
        return builder(uri).build();
    }

    /**
     * A builder for connections that need more than an address: credentials, TLS, a pool, Sentinels, replicas, strictness.
     *
     * @param addresses {@code host:port} for a single server, {@code host:port;host:port} for the seeds of a Redis Cluster; an
     *     IPv6 address in brackets. A single address that turns out to be a Cluster node is used as the only seed
     * @throws IllegalArgumentException if {@code addresses} is malformed
     * @throws IllegalStateException if Jedis is not on the class path
     */
    public static Builder builder(String addresses) {
        requireJedis();
        return new Builder(RedisAddresses.parse(addresses), RedisConnector.defaultClientConfig());
    }

    /**
     * A builder for connections that need more than a URI: timeouts, a pool, replicas, strictness.
     *
     * @param uri {@code redis://[[user]:password@]host[:port][/database]}, with TLS if the scheme is {@code rediss}; never part of a
     *     message
     * @throws IllegalArgumentException if {@code uri} is not of that form
     * @throws IllegalStateException if Jedis is not on the class path
     */
    public static Builder builder(URI uri) {
        requireJedis();
        return new Builder(RedisUri.place(uri), RedisUri.clientConfig(uri));
    }

    /**
     * A storage on the application's own client: {@code RedisClient}, {@code JedisPooled}, {@code RedisClusterClient}, {@code JedisCluster}
     * or any other. It is never closed here. Its timeouts, its pool's maximal wait and its retries are the application's. Bound them.
     * A client that repeats a call by itself, as one of a Cluster, may execute it twice: see {@link #over}. The user's rights are not
     * checked. The server's set-up is checked once, after the first call that succeeds, and each risk that {@link
     * Builder#strict} refuses is a warning. In a Cluster, only the server of that call's key is checked.
     *
     * <p>This storage closes the idle connections of the client's pools if Redis replies that it is not a primary that takes writes. New
     * connections then find the new primary. The old ones would fail the application's own writes as well. A {@code JedisSentineled} of
     * Jedis 6 or 7 does not expose its pool, and follows the Sentinels by itself.
     *
     * @param client the client; not called until the first use
     * @return a storage on {@code client}
     */
    public static RedisIdempotenceStorage using(UnifiedJedis client) {
        return new RedisIdempotenceStorage(
                new JedisClientRedis(Objects.requireNonNull(client, "client")), Duration.ZERO);
    }

    /**
     * A storage on any other driver, through an implementation of three commands. Works without Jedis. Redis is not contacted until the
     * first use, and nothing is closed here. The driver's timeouts, pools and retries are the application's. Bound them. Rights and set-up
     * are checked as by {@link #using}.
     *
     * <p>A driver that sends a call again after a reconnect may execute it twice. That is safe for every call but two. A {@link
     * IdempotenceStorage#delete} may delete an ID that was saved again in between, and the next attempt then runs beside that one. A
     * {@link IdempotenceStorage#release} may be reported as fenced although nothing overlapped.
     *
     * <p>After any failure but {@code OOM}, and those that {@code commands} declares as not sent, Redis may have executed the call. {@link
     * IdempotenceStorage#list} reads each record in its own round trip. There is no waiting for replicas: {@code WAIT} counts the writes of
     * its own connection, and on a shared connection it would block everybody.
     *
     * @param commands sends the commands through the driver
     * @return a storage on the driver
     */
    public static IdempotenceStorage over(RedisCommands commands) {
        return new RedisRecords(new DriverRedis(Objects.requireNonNull(commands, "commands")), Duration.ZERO);
    }

    private static void requireJedis() {
        OptionalDependency.require(
                RedisIdempotenceStorage.class,
                "redis.clients.jedis.UnifiedJedis",
                "connections to Redis need redis.clients:jedis 6.0 or later; add it, or pass another driver to"
                        + " RedisIdempotenceStorage.over(...)");
    }

    /**
     * A builder of a {@link RedisIdempotenceStorage} that opens its own connections. Its setters return it. Not thread-safe.
     *
     * <p>Defaults: those of the class; no Sentinel, no waiting for replicas, not strict, no lazy start.
     */
    public static final class Builder {
        private final RedisAddresses addresses;
        private ConnectionPoolConfig pool = RedisConnector.defaultPoolConfig();
        private JedisClientConfig client;
        private @Nullable String primaryName;
        private JedisClientConfig sentinelClient = RedisConnector.defaultClientConfig();
        private @Nullable ReplicaWait replicaWait;
        private boolean strict;
        private boolean lazyStart;

        private Builder(RedisAddresses addresses, JedisClientConfig client) {
            this.addresses = addresses;
            this.client = client;
        }

        /**
         * Sets the pool of connections.
         *
         * @param config copied by {@link #build}; for a Cluster it holds for each node. An unbounded wait for a connection becomes 500 ms
         */
        public Builder pool(ConnectionPoolConfig config) {
            this.pool = Objects.requireNonNull(config, "config");
            return this;
        }

        /**
         * Sets credentials, TLS, database and timeouts, instead of those of a URI.
         *
         * @param config used as it is. Without timeouts of its own it has the driver's, 2 s each, not this class's defaults
         * @throws IllegalArgumentException if a timeout is 0, which waits forever
         */
        public Builder client(JedisClientConfig config) {
            this.client = RedisConnector.bounded(config);
            return this;
        }

        /**
         * Sets the timeouts of the connections to Redis, and keeps their other settings: those of the URI or of {@link #client}. Call it
         * after that. The timeouts of Sentinels are those of {@link #sentinelClient}.
         *
         * @param connect how long opening a connection may take, 1 ms to 1 h; default 500 ms, or that of the client
         * @param reply how long a reply may take, 1 ms to 1 h; default 1 s, or that of the client
         * @throws IllegalArgumentException if one is out of range
         */
        public Builder timeouts(Duration connect, Duration reply) {
            this.client = RedisConnector.withTimeouts(client, connect, reply);
            return this;
        }

        /**
         * Treats the addresses as those of Redis Sentinels, which report the primary's address, now and after each failover.
         *
         * @param primaryName the primary's name in the Sentinels, often {@code mymaster}
         * @throws IllegalArgumentException if the name is blank
         */
        public Builder sentinel(String primaryName) {
            if (primaryName.isBlank()) {
                throw new IllegalArgumentException(
                        "the name of the primary is blank; give the one in 'sentinel monitor <name>', often mymaster");
            }
            this.primaryName = primaryName;
            return this;
        }

        /**
         * Sets credentials, TLS and timeouts for the Sentinels themselves.
         *
         * @param config used as it is; default: none, with the timeouts of the class
         * @throws IllegalArgumentException if a timeout is 0, which waits forever
         */
        public Builder sentinelClient(JedisClientConfig config) {
            this.sentinelClient = RedisConnector.bounded(config);
            return this;
        }

        /**
         * Lets each claim, each completion and each deletion count only once replicas have it ({@code WAIT}, sent together with it). A
         * failover to one of these replicas then does not lose it. If the replicas do not respond in time, a claim fails as if the storage
         * were down: nothing runs, and the primary releases the ID at once. A completion is retried in the background. Up to Redis 7.0,
         * replays and duplicates are also served only while the replicas respond. If many calls fail like this, the circuit breaker opens
         * until the replicas are back, and replays are refused as well, in every version.
         *
         * @param replicas how many, 1 to 100
         * @param timeout how long to wait for them, in addition to the reply timeout of {@link #client}; 1 ms to 10 s
         * @throws IllegalArgumentException if one is out of range
         */
        public Builder waitForReplicas(int replicas, Duration timeout) {
            this.replicaWait = new ReplicaWait(replicas, timeout);
            return this;
        }

        /**
         * Makes {@link #build} fail instead of warn if Redis is set up so that it can lose or refuse claims: it is a replica, its {@code
         * maxmemory-policy} is not {@code noeviction}, it has no append-only file, its version is before 6.2, or the user lacks {@code
         * INFO}.
         */
        public Builder strict() {
            this.strict = true;
            return this;
        }

        /**
         * Lets {@link #build} succeed while Redis is down. Redis is not contacted until the first use. Until a check has succeeded, calls
         * check again, at most once per second, and throw {@link StorageUnavailableException}: requests get 503 and nothing runs. The
         * checks and their messages are those of an eager {@link #build}, {@link #strict()} included.
         */
        public Builder lazyStart() {
            this.lazyStart = true;
            return this;
        }

        /**
         * Connects, or with {@link #lazyStart()} prepares to.
         *
         * @return a storage that owns its connections
         * @throws StorageUnavailableException if Redis does not respond, the user lacks a right, or {@link #strict()} forbids the set-up;
         *     everything opened is closed again. Never with {@link #lazyStart()}
         */
        public RedisIdempotenceStorage build() {
            RedisConnector connector =
                    new RedisConnector(addresses, pool, client, primaryName, sentinelClient, replicaWait, strict);
            return new RedisIdempotenceStorage(
                    lazyStart ? new LazyRedis(connector.name(), connector::connect) : connector.connect(),
                    replicaWait == null ? Duration.ZERO : replicaWait.timeout());
        }
    }
}
