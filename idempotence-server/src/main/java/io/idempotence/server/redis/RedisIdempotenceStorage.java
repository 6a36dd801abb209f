package io.idempotence.server.redis;

import io.idempotence.internal.OptionalDependency;
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
 * A storage in Redis 6.2 or later, a single server or a Redis Cluster. Thread-safe, also for virtual threads; starts no threads
 * besides the driver's own: those of its connection pools and, with {@link Builder#sentinel}, one that listens to each Sentinel.
 * Works with Jedis 6.0, 7.0 and 8.0, which is an optional dependency to be added, and through {@link #over} with any driver.
 *
 * <p>One key per ID, a binary string; its time to live is the retention, and tells how old a claim is: change it by hand on no claim that
 * may still run. Each call is one script on that key, one round trip (two when the server does not know the script yet). The time is the
 * server's. A completed record costs about 190 bytes of the server's memory beside the result.
 *
 * <p>Promise P2 holds as long as the primary keeps its data: an asynchronous failover, an eviction or a restart without
 * persistence can lose a claim. Run Redis with {@code maxmemory-policy noeviction} and {@code appendonly yes}. A server out of memory
 * refuses new claims (P6) but still records what was done.
 *
 * <p>Every method throws {@link StorageUnavailableException} for whatever Redis or the driver cannot do: no connection, no answer in
 * time, no free connection in the pool, {@code OOM}, {@code READONLY}, {@code LOADING}, {@code CLUSTERDOWN}, missing rights. Its
 * {@link StorageUnavailableException#nothingWritten()} is true when the call was never sent, or Redis answered it with an error. A thread
 * interrupted while it waits for a connection keeps its interrupt flag. Messages carry neither keys nor passwords.
 *
 * <p>A server that answers {@code READONLY}, {@code MASTERDOWN}, {@code LOADING} or {@code NOREPLICAS} may have been replaced behind its
 * address. No connection that was opened before is used again, and the call is sent once more on a new one.
 *
 * <p>A Redis user of its own needs the keys {@code ~idem:*} and the commands {@code evalsha eval get getrange exists set pexpire pttl
 * del ping}, and {@code select} for a database other than 0; an operator's also {@code scan}, and in a Cluster with replicas
 * {@code info}, or each of them lists its records again. A Cluster's user needs {@code cluster asking} besides, everybody {@code
 * wait} with {@link Builder#waitForReplicas}, and {@code info} with {@link Builder#strict}. A right that an application needs and lacks
 * is found at start, {@code ping} excepted: without it idle connections are closed.
 *
 * <p>Defaults of the clients opened here: connect 500 ms, answer 1 s, wait for a free connection 500 ms, at most 64 connections per
 * server. A command is sent at most 3 times within 2 s in a Cluster.
 */
public final class RedisIdempotenceStorage extends RedisRecords {
    private RedisIdempotenceStorage(Redis redis, Duration replicasMayTake) {
        super(redis, replicasMayTake);
    }

    /**
     * Connects with the defaults of this class.
     *
     * @param addresses {@code host:port} for a single server, {@code host:port;host:port} for the seeds of a Redis Cluster; an
     *     IPv6 address in brackets. A single place that turns out to be a Cluster node is used as the only seed
     * @return a storage that owns its connections
     * @throws IllegalArgumentException if {@code addresses} is malformed; says which place, what is wrong and how to fix it
     * @throws StorageUnavailableException if nothing there answers as it must; everything opened is closed again
     */
    public static RedisIdempotenceStorage connect(String addresses) {
        return builder(addresses).build();
    }

    /**
     * Connects with a pool of the caller's choice.
     *
     * @param addresses as for {@link #connect(String)}
     * @param poolConfig copied; for a Cluster it holds for each node. An unbounded wait for a connection becomes 500 ms
     * @return a storage that owns its connections
     * @throws IllegalArgumentException if {@code addresses} is malformed
     * @throws StorageUnavailableException if nothing there answers as it must; everything opened is closed again
     */
    public static RedisIdempotenceStorage connect(String addresses, ConnectionPoolConfig poolConfig) {
        return builder(addresses).pool(poolConfig).build();
    }

    /**
     * Connects to {@code redis://[[user]:password@]host[:port][/database]}, with TLS if the scheme is {@code rediss}; then the server's
     * certificate must be trusted by the JVM and name the host. The port is 6379 if there is none.
     *
     * @param uri where and as whom; never in a message
     * @return a storage that owns its connections
     * @throws IllegalArgumentException if {@code uri} is not of this form
     * @throws StorageUnavailableException if nothing there answers as it must; everything opened is closed again
     */
    public static RedisIdempotenceStorage connect(URI uri) {
        return builder(uri).build();
    }

    /**
     * For connections that need more than an address: credentials, TLS, a pool, Sentinels, replicas, strictness.
     *
     * @param addresses as for {@link #connect(String)}
     * @return a new builder
     * @throws IllegalArgumentException if {@code addresses} is malformed
     */
    public static Builder builder(String addresses) {
        requireJedis();
        return new Builder(RedisAddresses.parse(addresses), RedisConnector.defaultClientConfig());
    }

    /**
     * For connections that need more than a URI: a pool, replicas, strictness.
     *
     * @param uri as for {@link #connect(URI)}
     * @return a new builder
     * @throws IllegalArgumentException if {@code uri} is not of that form
     */
    public static Builder builder(URI uri) {
        requireJedis();
        return new Builder(RedisUri.place(uri), RedisUri.clientConfig(uri));
    }

    /**
     * Uses the application's own client: {@code RedisClient}, {@code JedisPooled}, {@code RedisClusterClient}, {@code JedisCluster} or any
     * other. It is never closed here. Its timeouts, its pool's maximal wait and its retries are the application's, and should be bounded.
     *
     * <p>One thing is done to it: when Redis answers that it is no primary that takes writes, the idle connections of the client's
     * pools are closed, so that new ones find the new primary. They would fail the application's own writes as well. A {@code
     * JedisSentineled} of Jedis 6 or 7 does not show its pool, and follows the Sentinels by itself.
     *
     * @param client not called until the first use
     * @return a storage on {@code client}
     */
    public static RedisIdempotenceStorage using(UnifiedJedis client) {
        return new RedisIdempotenceStorage(
                new ApplicationsRedis(Objects.requireNonNull(client, "client")), Duration.ZERO);
    }

    /**
     * Uses whatever driver the application has, through a class that sends three commands with it. Works without Jedis. Nothing is
     * contacted until the first use, and nothing is closed here. The driver's timeouts, pools and what it sends again are the
     * application's, and should be bounded.
     *
     * <p>Redis may have executed whatever failed, except where it is full. {@link IdempotenceStorage#list} reads each record in a
     * round trip of its own. Waiting for replicas is for connections opened here: {@code WAIT} counts the writes of its own
     * connection, and one that is shared would keep everybody waiting.
     *
     * @param commands a driver
     * @return a storage on it
     */
    public static IdempotenceStorage over(RedisCommands commands) {
        return new RedisRecords(new DriverRedis(Objects.requireNonNull(commands, "commands")), Duration.ZERO);
    }

    private static void requireJedis() {
        OptionalDependency.require(
                RedisIdempotenceStorage.class,
                "redis.clients.jedis.UnifiedJedis",
                "connections to Redis need redis.clients:jedis 6.0 or later; add it, or give the driver there is to"
                        + " RedisIdempotenceStorage.over(...)");
    }

    /**
     * Opens connections for a {@link RedisIdempotenceStorage}. Not thread-safe. Defaults: those of the class; no Sentinel, no waiting for
     * replicas, not strict, no lazy start.
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
         * @return this
         */
        public Builder pool(ConnectionPoolConfig config) {
            this.pool = Objects.requireNonNull(config, "config");
            return this;
        }

        /**
         * Sets credentials, TLS, database and timeouts, instead of those of a URI.
         *
         * @param config used as it is
         * @return this
         * @throws IllegalArgumentException if a timeout is 0, which waits forever
         */
        public Builder client(JedisClientConfig config) {
            this.client = RedisConnector.bounded(config);
            return this;
        }

        /**
         * Takes the addresses for Redis Sentinels, and asks them where the primary is, now and after each failover.
         *
         * @param primaryName what the Sentinels call it, often {@code mymaster}
         * @return this
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
         * @return this
         * @throws IllegalArgumentException if a timeout is 0, which waits forever
         */
        public Builder sentinelClient(JedisClientConfig config) {
            this.sentinelClient = RedisConnector.bounded(config);
            return this;
        }

        /**
         * Lets each claim and each end of one count only when replicas have it too ({@code WAIT}, sent together with it), so that a
         * failover to one of them does not lose it. When they do not answer in time, a claim fails as if the storage were down,
         * nothing runs, and the primary gives the ID back at once; an end is written again in the background. Replays and
         * duplicates, too, are answered only while the replicas do.
         *
         * @param replicas how many, 1 to 100
         * @param timeout how long to wait for them, in addition to the answer timeout of {@link #client}; 1 ms to 10 s
         * @return this
         * @throws IllegalArgumentException if one is out of range
         */
        public Builder waitForReplicas(int replicas, Duration timeout) {
            this.replicaWait = new ReplicaWait(replicas, timeout);
            return this;
        }

        /**
         * Makes {@link #build} fail, not only warn, where Redis is set up so that it can lose or refuse claims: a replica, a
         * {@code maxmemory-policy} other than {@code noeviction}, no append-only file, a version before 6.2, or a user that may
         * not ask ({@code INFO}).
         *
         * @return this
         */
        public Builder strict() {
            this.strict = true;
            return this;
        }

        /**
         * Lets {@link #build} succeed while Redis is down. Nothing is contacted until the first use. Until Redis was reached once and
         * found in order, every call checks again, at most once per second, and throws {@link StorageUnavailableException}: requests
         * get 503 and nothing runs. What would make an eager {@link #build} fail, also by {@link #strict()}, fails every call
         * instead, with the same message.
         *
         * @return this
         */
        public Builder lazyStart() {
            this.lazyStart = true;
            return this;
        }

        /**
         * Connects, or with {@link #lazyStart()} prepares to.
         *
         * @return a storage that owns its connections
         * @throws StorageUnavailableException if nothing there answers as it must, the user lacks a right that is needed, or {@link
         *     #strict()} forbids how it is set up; everything opened is closed again. Never with {@link #lazyStart()}
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
