package io.idempotence.server.redis;

import io.idempotence.internal.Causes;
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
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Response;
import redis.clients.jedis.ScanIteration;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisRedirectionException;

/**
 * A storage in Redis 6.2 or later, a single server or a Redis Cluster. Thread-safe, also for virtual threads; starts no threads
 * besides the driver's own: those of its connection pools and, with {@link Builder#sentinel}, one that listens to each Sentinel.
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
 * time, no free connection in the pool, {@code OOM}, {@code READONLY}, {@code LOADING}, {@code CLUSTERDOWN}, missing rights. A thread
 * interrupted while it waits for a connection keeps its interrupt flag. Messages carry neither keys nor passwords.
 *
 * <p>A Redis user of its own needs the keys {@code ~idem:*} and the commands {@code evalsha eval get getrange exists set pexpire pttl
 * time del ping}, and {@code select} for a database other than 0; an operator's also {@code scan}, and in a Cluster with replicas
 * {@code info}, or each of them lists its records again. A Cluster's user needs {@code cluster asking} besides, everybody {@code
 * wait} with {@link Builder#waitForReplicas}, and {@code info} with {@link Builder#strict}.
 *
 * <p>Defaults of the clients opened here: connect 1 s, answer 2 s, wait for a free connection 2 s, at most 64 connections per server.
 * A Cluster call is tried at most 3 times within 4 s.
 */
public final class RedisIdempotenceStorage implements IdempotenceStorage {
    private static final LuaScript CLAIM = LuaScript.load("claim.lua");
    private static final LuaScript WRITE = LuaScript.load("write.lua");
    private static final LuaScript FIND = LuaScript.load("find.lua");
    private static final LuaScript RESOLVE = LuaScript.load("resolve.lua");

    private static final int PAGE = 500;

    private static final byte[] REFUSE = {'0'};
    private static final byte[] TAKE_OVER = {'1'};
    private static final byte[] APPLIED = {'C'};
    private static final byte[] NOT_APPLIED = {'R'};

    private static final String CORRUPT = "IDEMCORRUPT ";
    // Redis 6.2 puts the line of the script before the code, and a minus.
    private static final Pattern ERROR_CODE = Pattern.compile(
            "\\b(OOM|READONLY|LOADING|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|CROSSSLOT|TRYAGAIN|MOVED|ASK|BUSY"
                    + "|NOPERM|NOAUTH|EXECABORT)\\b");

    private final UnifiedJedis client;
    private final String name;
    private final @Nullable Replication replication;
    private final Runnable dropIdleConnections;
    private final Runnable onClose;
    private final AtomicBoolean closed = new AtomicBoolean();

    private RedisIdempotenceStorage(
            UnifiedJedis client,
            String name,
            @Nullable Replication replication,
            Runnable dropIdleConnections,
            Runnable onClose) {
        this.client = client;
        this.name = name;
        this.replication = replication;
        this.dropIdleConnections = dropIdleConnections;
        this.onClose = onClose;
    }

    /**
     * Connects with the defaults of this class.
     *
     * @param addresses {@code host:port} for a single server, {@code host:port;host:port} for the seeds of a Redis Cluster; an
     *     IPv6 address in brackets. A single place that turns out to be a Cluster node is used as the only seed
     * @return a storage that owns its connections
     * @throws IllegalArgumentException if {@code addresses} is malformed; says which place, what is wrong and how to mend it
     * @throws StorageUnavailableException if nothing there answers as it must; everything opened is closed again
     */
    public static RedisIdempotenceStorage connect(String addresses) {
        return builder(addresses).build();
    }

    /**
     * Connects with a pool of the caller's choice.
     *
     * @param addresses as for {@link #connect(String)}
     * @param poolConfig copied; for a Cluster it holds for each node. An unbounded wait for a connection becomes 2 s
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
     * Uses the application's own client: {@code RedisClient}, {@code RedisClusterClient}, {@code JedisCluster} or any other. It is never
     * closed here. Its timeouts, its pool's maximal wait and its retries are the application's, and should be bounded.
     *
     * @param client not called until the first use
     * @return a storage on {@code client}
     */
    public static RedisIdempotenceStorage using(UnifiedJedis client) {
        return new RedisIdempotenceStorage(
                Objects.requireNonNull(client, "client"), "Redis (the application's client)", null, () -> {}, () -> {});
    }

    static RedisIdempotenceStorage owning(
            UnifiedJedis client, String name, @Nullable Replication replication, Runnable dropIdleConnections) {
        return new RedisIdempotenceStorage(client, name, replication, dropIdleConnections, client::close);
    }

    /** Asks for a record that is not there: proves that the server answers, and that scripts may run. */
    static void probe(UnifiedJedis client) {
        FIND.run(client, "idem:connect-check".getBytes(StandardCharsets.US_ASCII));
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
            if (e.getCause() instanceof Replication.TooFewException tooFew
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
        ScanIteration scan = scanning(() -> Primaries.scan(client, PAGE, pattern));
        return Stream.iterate(scanning(() -> page(scan)), Optional::isPresent, before -> scanning(() -> page(scan)))
                .flatMap(page -> page.orElseThrow().stream());
    }

    private Optional<List<IdempotenceRecord>> page(ScanIteration scan) {
        if (scan.isIterationCompleted()) {
            return Optional.empty();
        }
        List<StorageKey> keys =
                scan.nextBatchList().stream().map(StorageKey::new).toList();
        List<IdempotenceRecord> records = new ArrayList<>(keys.size());
        try (AbstractPipeline pipeline = client.pipelined()) {
            List<Response<Object>> replies =
                    keys.stream().map(key -> FIND.add(pipeline, bytes(key))).toList();
            pipeline.sync();
            for (int i = 0; i < replies.size(); i++) {
                seen(keys.get(i), replies.get(i)).ifPresent(records::add);
            }
        }
        return Optional.of(records);
    }

    private Optional<IdempotenceRecord> seen(StorageKey key, Response<Object> reply) {
        try {
            return header(key, (List<?>) answer(key, reply));
        } catch (CorruptRecordException e) {
            return Optional.empty();
        } catch (JedisDataException e) {
            if (isCorrupt(e)) {
                return Optional.empty();
            }
            throw e;
        }
    }

    /** A pipeline does not follow a slot to another node. */
    private Object answer(StorageKey key, Response<Object> reply) {
        try {
            return reply.get();
        } catch (JedisRedirectionException e) {
            return FIND.run(client, bytes(key));
        }
    }

    private <T> T scanning(Supplier<T> step) {
        try {
            return step.get();
        } catch (RuntimeException e) {
            throw translated("list", e);
        }
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
        try {
            return client.del(bytes(key)) > 0;
        } catch (RuntimeException e) {
            throw translated("delete", e);
        }
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            onClose.run();
        }
    }

    /** Names the servers; no credentials. */
    @Override
    public String toString() {
        return "RedisIdempotenceStorage[" + name + "]";
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
        try {
            return script.run(client, bytes(key), args);
        } catch (RuntimeException e) {
            throw translated(action, e);
        }
    }

    /** A claim that no replica has could be lost with its primary: then the storage has not said yes. */
    private Object runReplicated(String action, LuaScript script, StorageKey key, byte[]... args) {
        Replication wanted = replication;
        if (wanted == null) {
            return run(action, script, key, args);
        }
        try {
            return script.runReplicated(client, wanted, bytes(key), args);
        } catch (RuntimeException e) {
            throw translated(action, e);
        }
    }

    /** Whatever the driver throws, the record's state is not known: fail closed (P6). */
    private RuntimeException translated(String action, RuntimeException e) {
        String message = e.getMessage();
        if (message != null && isCorrupt(e)) {
            return new CorruptRecordException(
                    "a record in " + name + " cannot be read: " + message.substring(CORRUPT.length()));
        }
        boolean connectionFailed =
                e instanceof JedisClusterOperationException || Causes.has(e, JedisConnectionException.class);
        if (Causes.has(e, InterruptedException.class)) {
            Thread.currentThread().interrupt();
        } else if (connectionFailed) {
            // After a restart every idle connection is dead: the caller's one retry must not draw the next dead one.
            dropIdleConnections.run();
        }
        return new StorageUnavailableException(name + " could not " + action + ": " + reason(e), e);
    }

    private static boolean isCorrupt(RuntimeException e) {
        String message = e.getMessage();
        return e instanceof JedisDataException && message != null && message.startsWith(CORRUPT);
    }

    /** Why, in words that hold no key and no password. */
    static String reason(Throwable e) {
        if (Causes.has(e, InterruptedException.class)) {
            return "interrupted while waiting for a connection";
        }
        if (Causes.has(e, NoSuchElementException.class)) {
            return "no free connection in the pool in time";
        }
        if (e instanceof Replication.TooFewException) {
            return Objects.requireNonNullElse(e.getMessage(), "too few replicas have the write");
        }
        if (Causes.has(e, JedisAccessControlException.class)) {
            return "Redis denies the user or the password, or the user lacks a right";
        }
        if (Causes.has(e, SSLException.class)) {
            return "TLS failed; the JVM must trust the server's certificate, and the certificate must name the host";
        }
        if (Causes.has(e, JedisConnectionException.class)) {
            return "no connection, or no answer in time";
        }
        if (e instanceof JedisClusterOperationException) {
            return "no node of the Cluster answers, or none is responsible";
        }
        String message = e.getMessage();
        if (message != null && message.contains("can't run this command")) {
            return "the Redis user lacks the right to a command";
        }
        Matcher code = ERROR_CODE.matcher(message == null ? "" : message);
        return e instanceof JedisDataException && code.find()
                ? "Redis says " + code.group(1)
                : e.getClass().getSimpleName();
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
        return new IllegalStateException(name + " answered a script with " + reply.size() + " unknown elements");
    }

    /**
     * Opens connections for a {@link RedisIdempotenceStorage}. Not thread-safe. Defaults: those of the class; no Sentinel, no waiting for
     * replicas, not strict.
     */
    public static final class Builder {
        private final RedisAddresses addresses;
        private ConnectionPoolConfig pool = RedisConnector.defaultPoolConfig();
        private JedisClientConfig client;
        private @Nullable String primaryName;
        private JedisClientConfig sentinelClient = RedisConnector.defaultClientConfig();
        private @Nullable Replication replication;
        private boolean strict;

        private Builder(RedisAddresses addresses, JedisClientConfig client) {
            this.addresses = addresses;
            this.client = client;
        }

        /**
         * Sets the pool of connections.
         *
         * @param config copied by {@link #build}; for a Cluster it holds for each node. An unbounded wait for a connection becomes 2 s
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
         * @throws IllegalArgumentException if a timeout is 0, which waits for ever
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
         * @throws IllegalArgumentException if a timeout is 0, which waits for ever
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
         * @param timeout how long to wait for them; 1 ms to 10 s, and shorter than the answer timeout of {@link #client}
         * @return this
         * @throws IllegalArgumentException if one is out of range
         */
        public Builder waitForReplicas(int replicas, Duration timeout) {
            this.replication = new Replication(replicas, timeout);
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
         * Connects.
         *
         * @return a storage that owns its connections
         * @throws IllegalArgumentException if the settings contradict each other; says which
         * @throws StorageUnavailableException if nothing there answers as it must, or {@link #strict()} forbids how it is set up;
         *     everything opened is closed again
         */
        public RedisIdempotenceStorage build() {
            if (replication != null && replication.timeout().toMillis() >= client.getSocketTimeoutMillis()) {
                throw new IllegalArgumentException("waitForReplicas waits " + replication.timeout()
                        + ", not shorter than the answer timeout of " + client.getSocketTimeoutMillis()
                        + " ms: no answer could come in time; lower the one or raise the other");
            }
            return new RedisConnector(addresses, pool, client, primaryName, sentinelClient, replication, strict)
                    .connect();
        }
    }
}
