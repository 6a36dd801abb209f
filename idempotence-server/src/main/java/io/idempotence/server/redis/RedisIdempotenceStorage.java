package io.idempotence.server.redis;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Millis;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/**
 * A storage in Redis 6.2 or later, a single server or a Redis Cluster. Thread-safe, also for virtual threads; starts no threads
 * besides the driver's own: those of its connection pools and, with {@link Builder#sentinel}, one that listens to each Sentinel.
 * Works with Jedis 6.0, 7.0 and 8.0.
 *
 * <p>One key per ID, a binary string; its time to live is the retention, and tells how old a claim is: change it by hand on no claim that
 * may still run. Each call is one script on that key, one round trip (two when
 * the server does not know the script yet). The time is the server's. A completed record costs about 190 bytes of the server's memory
 * beside the result.
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
 * time del ping}, and {@code select} for a database other than 0; an operator's also {@code scan}, and in a Cluster with replicas
 * {@code info}, or each of them lists its records again. A Cluster's user needs {@code cluster asking} besides, everybody {@code
 * wait} with {@link Builder#waitForReplicas}, and {@code info} with {@link Builder#strict}. A right that an application needs and lacks
 * is found at start, {@code ping} excepted: without it idle connections are closed.
 *
 * <p>Defaults of the clients opened here: connect 500 ms, answer 1 s, wait for a free connection 500 ms, at most 64 connections per
 * server. A command is sent at most 3 times within 2 s in a Cluster.
 */
public final class RedisIdempotenceStorage implements IdempotenceStorage {
    private static final LuaScript CLAIM = LuaScript.load("claim.lua");
    private static final LuaScript WRITE = LuaScript.load("write.lua");
    private static final LuaScript FIND = LuaScript.load("find.lua");
    private static final LuaScript RESOLVE = LuaScript.load("resolve.lua");

    private static final int PAGE = 500;
    private static final Duration SLOW_CALL = Duration.ofSeconds(1);

    private static final byte[] REFUSE = {'0'};
    private static final byte[] TAKE_OVER = {'1'};
    private static final byte[] APPLIED = {'C'};
    private static final byte[] NOT_APPLIED = {'R'};

    private final Redis redis;
    private final AtomicBoolean closed = new AtomicBoolean();

    private final Duration slowCall;

    private RedisIdempotenceStorage(Redis redis, Duration slowCall) {
        this.redis = redis;
        this.slowCall = slowCall;
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
        return new RedisIdempotenceStorage(new ApplicationsRedis(Objects.requireNonNull(client, "client")), SLOW_CALL);
    }

    @Override
    public ClaimResult claim(ClaimRequest request) {
        long lease = Millis.capped(request.lease());
        long retention = Millis.capped(request.retention());
        try {
            return claimResult(
                    request,
                    runReplicated(
                            "claim",
                            CLAIM,
                            request.key(),
                            RecordHeader.claimed(request, lease, retention),
                            number(retention),
                            request.takeOver() ? TAKE_OVER : REFUSE));
        } catch (StorageUnavailableException e) {
            if (e.getCause() instanceof ReplicaWait.TooFewException tooFew
                    && claimResult(request, tooFew.answer()) instanceof ClaimResult.Claimed stored) {
                throw givingBack(stored, retention, String.valueOf(e.getMessage()), tooFew);
            }
            throw e;
        }
    }

    /**
     * Nothing runs under a claim that too few replicas have. Left on the primary it would show as abandoned, a false "outcome
     * unknown"; one that was abandoned before is so again at once, as the next attempt must know that it takes over. No replica
     * is waited for: they do not answer.
     */
    private StorageUnavailableException givingBack(
            ClaimResult.Claimed stored, long retention, String message, Throwable cause) {
        Claim claim = stored.claim();
        try {
            if (stored.takenOver()) {
                run(
                        "renew",
                        WRITE,
                        claim.key(),
                        RecordHeader.head('L', claim, 0).array(),
                        number(1));
            } else {
                run(
                        "release",
                        WRITE,
                        claim.key(),
                        RecordHeader.head('R', claim, 0).array(),
                        number(retention));
            }
            return StorageUnavailableException.givingBack(message, cause, true);
        } catch (RuntimeException e) {
            StorageUnavailableException refused = StorageUnavailableException.givingBack(message, cause, false);
            refused.addSuppressed(e);
            return refused;
        }
    }

    private ClaimResult claimResult(ClaimRequest request, Object answer) {
        if (!(answer instanceof List<?> reply)) {
            return claimed(request, 1, false);
        }
        return switch (text(reply.get(0))) {
            case "claimed" -> claimed(request, (Long) reply.get(1), (Long) reply.get(2) == 1);
            case "in-progress" -> new ClaimResult.InProgress(Duration.ofMillis((Long) reply.get(1)));
            case "completed" -> new ClaimResult.Completed((byte[]) reply.get(1));
            case "mismatch" -> new ClaimResult.Mismatch();
            case "abandoned" -> new ClaimResult.Abandoned((Long) reply.get(1));
            case "unknown" -> new ClaimResult.Unknown();
            default -> throw unreadable(reply);
        };
    }

    private static ClaimResult claimed(ClaimRequest request, long fence, boolean takenOver) {
        return new ClaimResult.Claimed(
                new Claim(request.key(), request.fingerprint(), request.owner(), fence), takenOver);
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        byte[] record = RecordHeader.head('C', claim, result.length).put(result).array();
        return write("complete", claim, record, Millis.checked("retention", retention));
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        byte[] record = RecordHeader.head('D', claim, result.length).put(result).array();
        return write("complete provisionally", claim, record, Millis.checked("retention", retention));
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        byte[] record = RecordHeader.head('R', claim, 0).array();
        return write("release", claim, record, Millis.checked("retention", retention));
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        long millis = Millis.checked("retention", retention);
        byte[] record =
                RecordHeader.head('U', claim, Long.BYTES).putLong(millis).array();
        return write("mark unknown", claim, record, millis);
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        byte[] record = RecordHeader.head('L', claim, 0).array();
        return write("renew", claim, record, Millis.checked("lease", lease));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        return header(key, (List<?>) run("find", FIND, key));
    }

    private static Optional<IdempotenceRecord> header(StorageKey key, List<?> reply) {
        return RecordHeader.read(key, (byte[]) reply.get(0), (Long) reply.get(1), (Long) reply.get(2));
    }

    /** {@inheritDoc} Walks with {@code SCAN} over every primary, 500 keys a step, and reads each step's records in one more. */
    @Override
    public Stream<IdempotenceRecord> list(String namespace) {
        String pattern = StorageKey.prefix(namespace) + "*";
        Iterator<List<RecordScan.Read>> scan = listing(() -> redis.scan(pattern, PAGE, FIND));
        return Stream.iterate(0, page -> listing(scan::hasNext), page -> page + 1)
                .flatMap(page -> listing(() -> records(scan.next())).stream());
    }

    private static List<IdempotenceRecord> records(List<RecordScan.Read> page) {
        List<IdempotenceRecord> records = new ArrayList<>(page.size());
        page.forEach(read -> record(read).ifPresent(records::add));
        return records;
    }

    private static Optional<IdempotenceRecord> record(RecordScan.Read read) {
        if (read.reply() instanceof RuntimeException error) {
            if (RedisErrors.corruption(error) == null) {
                throw error;
            }
            return Optional.empty();
        }
        try {
            return header(new StorageKey(RedisCall.text(read.key())), (List<?>) read.reply());
        } catch (CorruptRecordException e) {
            return Optional.empty();
        }
    }

    private <T> T listing(Supplier<T> step) {
        return calling("list", step);
    }

    @Override
    public boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention) {
        byte[] millis = number(Millis.checked("retention", retention));
        Object done = resolution == Resolution.APPLIED
                ? run("resolve", RESOLVE, key, APPLIED, number(fence), millis, ClaimResult.noResult())
                : run("resolve", RESOLVE, key, NOT_APPLIED, number(fence), millis);
        return (Long) done == 1;
    }

    @Override
    public boolean delete(StorageKey key) {
        return calling("delete", () -> redis.delete(bytes(key)));
    }

    /** One second, and the time that replicas may take. */
    @Override
    public Duration slowCall() {
        return slowCall;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            redis.close();
        }
    }

    /** Names the servers; no credentials. */
    @Override
    public String toString() {
        return "RedisIdempotenceStorage[" + redis.name() + "]";
    }

    private WriteResult write(String action, Claim claim, byte[] record, long millis) {
        Object answer = runReplicated(action, WRITE, claim.key(), record, number(millis));
        if (answer instanceof List<?> reply) {
            return new WriteResult.Fenced((byte[]) reply.get(1));
        }
        return switch (((Long) answer).intValue()) {
            case 1 -> new WriteResult.Done();
            case 2 -> new WriteResult.StoredAfterLoss();
            case 3 -> new WriteResult.Lost();
            case 4 -> new WriteResult.Fenced(null);
            default -> throw unreadable(List.of(answer));
        };
    }

    private Object run(String action, LuaScript script, StorageKey key, byte[]... args) {
        return calling(action, () -> redis.run(script, bytes(key), args));
    }

    /** A claim that no replica has could be lost with its primary: then the storage has not said yes. */
    private Object runReplicated(String action, LuaScript script, StorageKey key, byte[]... args) {
        return calling(action, () -> redis.runReplicated(script, bytes(key), args));
    }

    private <T> T calling(String action, Supplier<T> call) {
        try {
            return call.get();
        } catch (NothingWrittenException e) {
            throw translated(action, e.reason(), true);
        } catch (RuntimeException e) {
            throw translated(action, e, false);
        }
    }

    /** Whatever the driver throws, the record's state is not known: fail closed (P6). */
    private RuntimeException translated(String action, RuntimeException e, boolean nothingWritten) {
        String corruption = RedisErrors.corruption(e);
        if (corruption != null) {
            return new CorruptRecordException("a record in " + redis.name() + " cannot be read: " + corruption);
        }
        if (RedisErrors.isInterrupted(e)) {
            Thread.currentThread().interrupt();
        }
        String message = redis.name() + " could not " + action + ": " + RedisErrors.reason(e);
        if (!nothingWritten) {
            return new StorageUnavailableException(message, e);
        }
        return RedisErrors.isFull(e)
                ? StorageUnavailableException.refused(message, e)
                : StorageUnavailableException.notSent(message, e);
    }

    private static byte[] bytes(StorageKey key) {
        return key.value().getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] number(long value) {
        return Long.toString(value).getBytes(StandardCharsets.US_ASCII);
    }

    private static String text(@Nullable Object bytes) {
        return new String((byte[]) bytes, StandardCharsets.US_ASCII);
    }

    private IllegalStateException unreadable(List<?> reply) {
        return new IllegalStateException(
                redis.name() + " answered a script with " + reply.size() + " unknown elements");
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
                    replicaWait == null ? SLOW_CALL : SLOW_CALL.plus(replicaWait.timeout()));
        }
    }
}
