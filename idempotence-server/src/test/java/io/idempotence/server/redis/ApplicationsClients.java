package io.idempotence.server.redis;

import io.idempotence.server.redis.internal.jedis.RedisAddresses;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.UnifiedJedis;

/** The Jedis clients of applications. Their classes differ between versions of Jedis, of which a run has only one. */
final class ApplicationsClients {
    private static final String PACKAGE = "redis.clients.jedis.";

    private ApplicationsClients() {}

    /** The classes of clients of one server that this run has. */
    static List<String> ofOneServer() {
        return existing("JedisPooled", "RedisClient");
    }

    static List<String> ofClusters() {
        return existing("JedisCluster", "RedisClusterClient");
    }

    static List<String> ofSentinels() {
        return existing("JedisSentineled", "RedisSentinelClient");
    }

    static UnifiedJedis oneServer(String type, int port) {
        return oneServer(type, port, EmbeddedRedis.patientPool());
    }

    static UnifiedJedis oneServer(String type, int port, ConnectionPoolConfig pool) {
        return oneServer(type, port, EmbeddedRedis.patientClient().build(), pool);
    }

    static UnifiedJedis oneServer(String type, int port, JedisClientConfig config, ConnectionPoolConfig pool) {
        HostAndPort address = new HostAndPort("127.0.0.1", port);
        return type.equals("RedisClient")
                ? Newer.oneServer(address, config, pool)
                : construct(type, address, config, pool);
    }

    @SuppressWarnings("deprecation") // applications have it
    static UnifiedJedis cluster(String type, EmbeddedRedisCluster cluster) {
        Set<HostAndPort> seeds = Set.of(new HostAndPort(
                cluster.nodes().get(0).host(), cluster.nodes().get(0).port()));
        return type.equals("RedisClusterClient")
                ? Newer.cluster(seeds)
                : new redis.clients.jedis.JedisCluster(
                        seeds, EmbeddedRedis.patientClient().build());
    }

    static UnifiedJedis sentinels(String type, EmbeddedRedisSentinel group) {
        Set<HostAndPort> sentinels =
                new LinkedHashSet<>(RedisAddresses.parse(group.addresses()).places());
        JedisClientConfig config = EmbeddedRedis.patientClient().build();
        return type.equals("RedisSentinelClient")
                ? Newer.sentinels(EmbeddedRedisSentinel.NAME, sentinels, config)
                : construct(type, EmbeddedRedisSentinel.NAME, config, sentinels, config);
    }

    private static List<String> existing(String... types) {
        return Stream.of(types).filter(ApplicationsClients::exists).toList();
    }

    private static boolean exists(String type) {
        try {
            Class.forName(PACKAGE + type);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    /** Classes that the newest version, with which the tests are compiled, has no more. */
    private static UnifiedJedis construct(String type, Object... arguments) {
        try {
            return (UnifiedJedis) Stream.of(Class.forName(PACKAGE + type).getConstructors())
                    .filter(each -> fits(each.getParameterTypes(), arguments))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(type + " has no such constructor"))
                    .newInstance(arguments);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(Arrays.toString(arguments), e);
        }
    }

    private static boolean fits(Class<?>[] parameters, Object[] arguments) {
        if (parameters.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < parameters.length; i++) {
            if (!parameters[i].isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }

    /** Linked only where these classes exist. */
    private static final class Newer {
        static UnifiedJedis oneServer(HostAndPort address, JedisClientConfig config, ConnectionPoolConfig pool) {
            return RedisClient.builder()
                    .hostAndPort(address)
                    .clientConfig(config)
                    .poolConfig(pool)
                    .build();
        }

        static UnifiedJedis cluster(Set<HostAndPort> seeds) {
            return RedisClusterClient.builder()
                    .nodes(seeds)
                    .clientConfig(EmbeddedRedis.patientClient().build())
                    .build();
        }

        static UnifiedJedis sentinels(String name, Set<HostAndPort> sentinels, JedisClientConfig config) {
            return RedisSentinelClient.builder()
                    .masterName(name)
                    .sentinels(sentinels)
                    .sentinelClientConfig(config)
                    .clientConfig(config)
                    .build();
        }
    }
}
