package io.idempotence.server.redis;

import java.util.Collection;
import java.util.List;
import java.util.stream.Stream;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;

/** Users of Redis who may do what {@link RedisIdempotenceStorage} documents, and nothing else. */
final class Rights {
    /** What an application's user may run on a single server. */
    static final List<String> OF_AN_APPLICATION =
            List.of("evalsha", "eval", "get", "getrange", "exists", "set", "pexpire", "pttl", "del", "ping", "echo");

    static final String PASSWORD = "s3cret";

    private Rights() {}

    /** Makes an application's user that may run some commands more, and says how to connect as it. */
    static JedisClientConfig applicationAnd(Collection<EmbeddedRedis> servers, String... more) {
        return user(
                servers,
                Stream.concat(OF_AN_APPLICATION.stream(), Stream.of(more)).toList());
    }

    /** The same in a Cluster. */
    static JedisClientConfig inCluster(EmbeddedRedisCluster cluster, String... more) {
        return applicationAnd(
                cluster.servers(),
                Stream.concat(Stream.of("cluster", "asking"), Stream.of(more)).toArray(String[]::new));
    }

    /** Makes a user that may run these commands on records, and says how to connect as it. */
    static JedisClientConfig user(Collection<EmbeddedRedis> servers, List<String> commands) {
        String name = "may-" + String.join("-", commands);
        String[] rules = Stream.concat(
                        Stream.of("reset", "on", ">" + PASSWORD, "~idem:*"),
                        commands.stream().map(command -> "+" + command))
                .toArray(String[]::new);
        for (EmbeddedRedis server : servers) {
            try (Jedis jedis = server.jedis()) {
                jedis.aclSetUser(name, rules);
            }
        }
        return EmbeddedRedis.patientClient().user(name).password(PASSWORD).build();
    }
}
