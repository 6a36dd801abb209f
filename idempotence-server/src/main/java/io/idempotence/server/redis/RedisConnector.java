package io.idempotence.server.redis;

import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.util.Pool;

/** Opens the clients that a {@link RedisIdempotenceStorage} owns, looks at the servers, and closes everything again when a look fails. */
final class RedisConnector {
    private static final Logger LOG = LoggerFactory.getLogger(RedisIdempotenceStorage.class);

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);
    private static final Duration ANSWER_TIMEOUT = Duration.ofSeconds(2);
    private static final Duration POOL_WAIT = Duration.ofSeconds(2);
    private static final int MAX_CONNECTIONS = 64;
    private static final int CLUSTER_ATTEMPTS = 3;
    private static final Duration CLUSTER_TOTAL = Duration.ofSeconds(4);
    private static final Pattern VERSION = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})\\..*");

    private final RedisAddresses addresses;
    private final GenericObjectPoolConfig<Connection> pool;
    private final JedisClientConfig clientConfig;
    private final @Nullable String primaryName;
    private final JedisClientConfig sentinelConfig;
    private final @Nullable Replication replication;
    private final boolean strict;

    RedisConnector(
            RedisAddresses addresses,
            ConnectionPoolConfig pool,
            JedisClientConfig clientConfig,
            @Nullable String primaryName,
            JedisClientConfig sentinelConfig,
            @Nullable Replication replication,
            boolean strict) {
        this.addresses = addresses;
        this.pool = pool.clone();
        if (this.pool.getMaxWaitDuration().isNegative()) {
            this.pool.setMaxWait(POOL_WAIT);
        }
        this.clientConfig = clientConfig;
        this.primaryName = primaryName;
        this.sentinelConfig = sentinelConfig;
        this.replication = replication;
        this.strict = strict;
    }

    static ConnectionPoolConfig defaultPoolConfig() {
        ConnectionPoolConfig config = new ConnectionPoolConfig();
        config.setMaxTotal(MAX_CONNECTIONS);
        config.setMaxIdle(MAX_CONNECTIONS);
        config.setMaxWait(POOL_WAIT);
        return config;
    }

    static JedisClientConfig defaultClientConfig() {
        return withTimeouts().build();
    }

    static DefaultJedisClientConfig.Builder withTimeouts() {
        return DefaultJedisClientConfig.builder()
                .connectionTimeoutMillis((int) CONNECT_TIMEOUT.toMillis())
                .socketTimeoutMillis((int) ANSWER_TIMEOUT.toMillis());
    }

    static JedisClientConfig bounded(JedisClientConfig config) {
        if (config.getSocketTimeoutMillis() <= 0 || config.getConnectionTimeoutMillis() <= 0) {
            throw new IllegalArgumentException("a Redis timeout of 0 waits for ever; give connectionTimeoutMillis and"
                    + " socketTimeoutMillis of at least 1");
        }
        return config;
    }

    RedisIdempotenceStorage connect() {
        if (primaryName != null) {
            return connectSentinel(primaryName);
        }
        return addresses.isCluster() ? connectCluster() : connectSingle();
    }

    private RedisIdempotenceStorage connectSingle() {
        String name = "Redis at " + addresses;
        RedisClient client = opened(
                name,
                () -> RedisClient.builder()
                        .hostAndPort(addresses.places().get(0))
                        .clientConfig(clientConfig)
                        .poolConfig(pool)
                        .build());
        boolean inCluster = checked(name, client, () -> {
            try {
                RedisIdempotenceStorage.probe(client);
            } catch (JedisMovedDataException e) {
                return true;
            }
            if (isClusterNode(client.getPool())) {
                return true;
            }
            lookAt(name, List.of(client.getPool()));
            return false;
        });
        if (inCluster) {
            client.close();
            return connectCluster();
        }
        return RedisIdempotenceStorage.owning(client, name, replication, client.getPool()::clear);
    }

    private RedisIdempotenceStorage connectSentinel(String primaryName) {
        String name = "Redis '" + primaryName + "' of the Sentinels at " + addresses;
        RedisSentinelClient client = opened(
                name,
                () -> RedisSentinelClient.builder()
                        .masterName(primaryName)
                        .sentinels(new LinkedHashSet<>(addresses.places()))
                        .sentinelClientConfig(sentinelConfig)
                        .clientConfig(clientConfig)
                        .poolConfig(pool)
                        .build());
        checked(name, client, () -> {
            RedisIdempotenceStorage.probe(client);
            lookAt(name, client.getPrimaryNodesConnectionMap().values());
            return true;
        });
        return RedisIdempotenceStorage.owning(
                client,
                name,
                replication,
                () -> client.getPrimaryNodesConnectionMap().values().forEach(Pool::clear));
    }

    private RedisIdempotenceStorage connectCluster() {
        String name = "Redis Cluster at " + addresses;
        RedisClusterClient client = opened(
                name,
                () -> RedisClusterClient.builder()
                        .nodes(new LinkedHashSet<>(addresses.places()))
                        .clientConfig(clientConfig)
                        .poolConfig(pool)
                        .maxAttempts(CLUSTER_ATTEMPTS)
                        .maxTotalRetriesDuration(CLUSTER_TOTAL)
                        .build());
        checked(name, client, () -> {
            RedisIdempotenceStorage.probe(client);
            lookAt(name, client.getClusterNodes().values());
            return true;
        });
        return RedisIdempotenceStorage.owning(
                client,
                name,
                replication,
                // Nothing tells which node failed: one that stays dead must not cost the others their connections at
                // every call.
                new AtMostOncePerSecond(
                        () -> client.getClusterNodes().values().forEach(Pool::clear), System::nanoTime));
    }

    private static <T> T opened(String name, Supplier<T> opening) {
        try {
            return opening.get();
        } catch (JedisException e) {
            throw doesNotAnswer(name, e);
        }
    }

    private static <T> T checked(String name, UnifiedJedis client, Supplier<T> check) {
        try {
            return check.get();
        } catch (StorageUnavailableException e) {
            client.close();
            throw e;
        } catch (RuntimeException e) {
            client.close();
            throw doesNotAnswer(name, e);
        }
    }

    private static StorageUnavailableException doesNotAnswer(String name, RuntimeException e) {
        return new StorageUnavailableException(
                name + " cannot be used: " + RedisIdempotenceStorage.reason(e)
                        + "; check that it runs, that the address is right, and the credentials",
                e);
    }

    // ---- how the servers are set up

    private void lookAt(String name, Iterable<? extends Pool<Connection>> nodes) {
        List<String> risks = new ArrayList<>();
        for (Pool<Connection> node : nodes) {
            Map<String, String> info = info(node);
            if (!isClusterReplica(info)) {
                risks.addAll(risks(info));
            }
        }
        List<String> different = risks.stream().distinct().toList();
        if (strict && !different.isEmpty()) {
            throw new StorageUnavailableException(
                    name + " is not set up as strict() demands: " + String.join("; ", different), null);
        }
        different.forEach(risk -> LOG.warn("{}: {}", name, risk));
    }

    /** Best effort: a Redis user of its own may lack the right to ask. */
    private static Map<String, String> info(Pool<Connection> node) {
        Map<String, String> info = new HashMap<>();
        try (Connection connection = node.getResource()) {
            connection.sendCommand(Protocol.Command.INFO);
            for (String line : connection.getBulkReply().split("\r?\n", -1)) {
                int colon = line.indexOf(':');
                if (colon > 0) {
                    info.put(line.substring(0, colon), line.substring(colon + 1));
                }
            }
        } catch (JedisException e) {
            LOG.debug("INFO was refused, so nothing is known about how this Redis is set up", e);
        }
        return info;
    }

    /** Who may not ask {@code INFO} may ask {@code CLUSTER} wherever there is one. */
    private static boolean isClusterNode(Pool<Connection> node) {
        Map<String, String> info = info(node);
        if (!info.isEmpty()) {
            return "1".equals(info.get("cluster_enabled"));
        }
        try (Connection connection = node.getResource()) {
            connection.sendCommand(Protocol.Command.CLUSTER, "MYID");
            connection.getBulkReply();
            return true;
        } catch (JedisDataException e) {
            LOG.debug("CLUSTER was refused, so this Redis is taken for a single server", e);
            return false;
        }
    }

    /** Whether a node is a Cluster's replica; false if it may not be asked. */
    static boolean isClusterReplica(Pool<Connection> node) {
        return isClusterReplica(info(node));
    }

    private static boolean isClusterReplica(Map<String, String> info) {
        return "1".equals(info.get("cluster_enabled")) && "slave".equals(info.get("role"));
    }

    private List<String> risks(Map<String, String> info) {
        List<String> risks = new ArrayList<>();
        if (info.isEmpty()) {
            if (strict) {
                risks.add("it may not be asked how it is set up; give the user the right to INFO");
            }
            return risks;
        }
        String policy = info.getOrDefault("maxmemory_policy", "noeviction");
        if (!policy.equals("noeviction")) {
            risks.add("maxmemory-policy " + policy
                    + " may evict records, and what they protect then runs again; set noeviction");
        }
        if ("slave".equals(info.get("role"))) {
            risks.add("it is a replica, on which every claim will fail; connect to the primary");
        }
        if ("0".equals(info.get("aof_enabled"))) {
            risks.add("it keeps no append-only file, so that a restart can forget claims; set appendonly yes");
        }
        Matcher version = VERSION.matcher(info.getOrDefault("redis_version", ""));
        if (version.matches()) {
            int major = Integer.parseInt(version.group(1));
            if (major < 6 || (major == 6 && Integer.parseInt(version.group(2)) < 2)) {
                risks.add("it is older than Redis 6.2, which is not tested");
            }
        }
        return risks;
    }
}
