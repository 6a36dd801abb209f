package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.redis.internal.ServerInfo;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.providers.ClusterConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;

/**
 * The opening of connections. It checks the servers and the rights of the user, and closes everything again if a check fails.
 *
 * <p>It uses what Jedis 6.0, 7.0 and 8.0 have in common: the connection providers, not the clients, whose names differ.
 */
public final class RedisConnector {
    private static final Duration CONNECT_TIMEOUT = Duration.ofMillis(500);
    private static final Duration REPLY_TIMEOUT = Duration.ofSeconds(1);
    private static final Duration POOL_WAIT = Duration.ofMillis(500);
    private static final Duration LONGEST_TIMEOUT = Duration.ofHours(1);

    private static final String CHECK = "; check that it runs, that the address is right, and the credentials";
    private static final int MAX_CONNECTIONS = 64;
    private static final byte[] NEVER_WRITTEN = RedisCall.bytes("idem:connect-check");

    private final RedisAddresses addresses;
    private final GenericObjectPoolConfig<Connection> pool;
    private final JedisClientConfig clientConfig;
    private final @Nullable String primaryName;
    private final JedisClientConfig sentinelConfig;
    private final @Nullable ReplicaWait replicaWait;
    private final boolean strict;

    public RedisConnector(
            RedisAddresses addresses,
            ConnectionPoolConfig pool,
            JedisClientConfig clientConfig,
            @Nullable String primaryName,
            JedisClientConfig sentinelConfig,
            @Nullable ReplicaWait replicaWait,
            boolean strict) {
        this.addresses = addresses;
        this.pool = pool.clone();
        if (this.pool.getMaxWaitDuration().isNegative()) {
            this.pool.setMaxWait(POOL_WAIT);
        }
        this.clientConfig = clientConfig;
        this.primaryName = primaryName;
        this.sentinelConfig = sentinelConfig;
        this.replicaWait = replicaWait;
        this.strict = strict;
    }

    public static ConnectionPoolConfig defaultPoolConfig() {
        ConnectionPoolConfig config = new ConnectionPoolConfig();
        config.setMaxTotal(MAX_CONNECTIONS);
        config.setMaxIdle(MAX_CONNECTIONS);
        config.setMaxWait(POOL_WAIT);
        return config;
    }

    public static JedisClientConfig defaultClientConfig() {
        return withTimeouts().build();
    }

    public static DefaultJedisClientConfig.Builder withTimeouts() {
        return DefaultJedisClientConfig.builder()
                .connectionTimeoutMillis((int) CONNECT_TIMEOUT.toMillis())
                .socketTimeoutMillis((int) REPLY_TIMEOUT.toMillis());
    }

    /** @throws IllegalArgumentException if a timeout is out of range */
    public static JedisClientConfig withTimeouts(JedisClientConfig client, Duration connect, Duration reply) {
        return DefaultJedisClientConfig.builder()
                .from(client)
                .connectionTimeoutMillis(millis("connect", connect))
                .socketTimeoutMillis(millis("reply", reply))
                .build();
    }

    private static int millis(String name, Duration timeout) {
        if (timeout.compareTo(Duration.ofMillis(1)) < 0 || timeout.compareTo(LONGEST_TIMEOUT) > 0) {
            throw new IllegalArgumentException("the timeout '" + name + "' must be 1 ms to 1 h, got " + timeout);
        }
        return (int) timeout.toMillis();
    }

    public static JedisClientConfig bounded(JedisClientConfig config) {
        if (config.getSocketTimeoutMillis() <= 0 || config.getConnectionTimeoutMillis() <= 0) {
            throw new IllegalArgumentException("a Redis timeout of 0 waits forever; give connectionTimeoutMillis and"
                    + " socketTimeoutMillis of at least 1");
        }
        return config;
    }

    /** The servers to connect to. A single address may turn out to be a Cluster's. */
    public String name() {
        if (primaryName != null) {
            return "Redis '" + primaryName + "' of the Sentinels at " + addresses;
        }
        return addresses.isCluster() ? clusterName() : "Redis at " + addresses;
    }

    private String clusterName() {
        return "Redis Cluster at " + addresses;
    }

    public Redis connect() {
        if (primaryName != null) {
            return connectSentinel(primaryName);
        }
        return addresses.isCluster() ? connectCluster() : connectSingle();
    }

    private Redis connectSingle() {
        PooledConnectionProvider provider = opened(
                name(), () -> new PooledConnectionProvider(addresses.places().get(0), clientConfig, pool));
        PooledRedis redis = new PooledRedis.Primary(name(), provider, limits(), replicaWait, provider::close);
        boolean inCluster = checked(redis, () -> {
            try {
                redis.checkRights(NEVER_WRITTEN, List.of());
            } catch (NothingWrittenException e) {
                if (e.reason() instanceof JedisMovedDataException) {
                    return true;
                }
                throw e;
            }
            if (isClusterNode(redis.servers().get(0))) {
                return true;
            }
            checkSetUp(redis);
            return false;
        });
        if (inCluster) {
            redis.close();
            return connectCluster();
        }
        return redis;
    }

    private Redis connectSentinel(String primaryName) {
        SentinelConnections provider;
        try {
            provider = sentineled(primaryName);
        } catch (JedisException e) {
            throw unusable(name(), whyNoSentinel(e, primaryName), e);
        }
        PooledRedis redis = new PooledRedis.Primary(name(), provider, limits(), replicaWait, provider::close);
        return verified(redis, List.of());
    }

    private SentinelConnections sentineled(String primaryName) {
        return new SentinelConnections(
                primaryName, clientConfig, pool, new LinkedHashSet<>(addresses.places()), sentinelConfig);
    }

    private Redis connectCluster() {
        ClusterConnectionProvider provider = opened(
                clusterName(),
                () -> new ClusterConnectionProvider(new LinkedHashSet<>(addresses.places()), clientConfig, pool));
        PooledRedis redis = new ClusterRedis(clusterName(), provider, limits(), replicaWait);
        return verified(redis, List.of(RedisCall.of(Protocol.Command.ASKING)));
    }

    private Redis verified(PooledRedis redis, List<RedisCall> moreRights) {
        return checked(redis, () -> {
            redis.checkRights(NEVER_WRITTEN, moreRights);
            checkSetUp(redis);
            return redis;
        });
    }

    private PooledRedis.ConnectionLimits limits() {
        return new PooledRedis.ConnectionLimits(
                pool.getMaxTotal(),
                pool.getMaxWaitDuration(),
                Duration.ofMillis(clientConfig.getSocketTimeoutMillis()));
    }

    private <T> T opened(String name, Supplier<T> opening) {
        try {
            return opening.get();
        } catch (JedisException e) {
            throw unavailable(name, e);
        }
    }

    private <T> T checked(Redis redis, Supplier<T> check) {
        try {
            return check.get();
        } catch (StorageUnavailableException e) {
            redis.close();
            throw e;
        } catch (NothingWrittenException e) {
            redis.close();
            throw unavailable(redis.name(), e.reason());
        } catch (RuntimeException e) {
            redis.close();
            throw unavailable(redis.name(), e);
        }
    }

    private StorageUnavailableException unavailable(String name, RuntimeException e) {
        // The Sentinels have named a primary, so they are not why it failed.
        boolean mayBeWrong = primaryName == null && JedisErrors.mayBeOfAnotherKind(e) && !JedisErrors.hasTimedOut(e);
        Optional<String> wrong = mayBeWrong ? new WrongServer(addresses, clientConfig).forRecords() : Optional.empty();
        return unusable(name, wrong.orElseGet(() -> JedisErrors.reason(e) + CHECK), e);
    }

    private String whyNoSentinel(JedisException e, String primaryName) {
        WrongServer sentinels = new WrongServer(addresses, sentinelConfig);
        return sentinels.forSentinels(primaryName).orElseGet(() -> {
            String silent = sentinels.silent(e).map(why -> " (" + why + ")").orElse("");
            return e instanceof JedisConnectionException
                    ? JedisErrors.reason(e) + silent + CHECK
                    : "the Sentinels have no primary of this name" + silent + "; check the name";
        });
    }

    private static StorageUnavailableException unusable(String name, String why, RuntimeException e) {
        return StorageUnavailableException.notSent(name + " cannot be used: " + why, e);
    }

    private void checkSetUp(PooledRedis redis) {
        List<String> risks = new ArrayList<>();
        for (RedisServer server : redis.servers()) {
            ServerInfo info = server.info();
            if (strict && !info.isKnown()) {
                risks.add("its configuration may not be read; give the user the right to INFO");
            }
            if (!info.isClusterReplica()) {
                risks.addAll(info.risks());
            }
        }
        List<String> different = risks.stream().distinct().toList();
        if (strict && !different.isEmpty()) {
            throw StorageUnavailableException.notSent(
                    redis.name() + " is not set up as strict() demands: " + String.join("; ", different), null);
        }
        different.forEach(risk -> Redis.LOG.warn("{}: {}", redis.name(), risk));
    }

    /** Whether a server is a node of a Cluster. A user without {@code INFO} may use {@code CLUSTER} if there is one. */
    private static boolean isClusterNode(RedisServer server) {
        ServerInfo info = server.info();
        if (info.isKnown()) {
            return info.isInCluster();
        }
        try {
            server.ask(RedisCall.of(Protocol.Command.CLUSTER, "MYID"));
            return true;
        } catch (JedisDataException e) {
            Redis.LOG.debug("CLUSTER was refused, so this Redis is taken for a single server", e);
            return false;
        }
    }
}
