package io.idempotence.spring.server;

import io.idempotence.server.redis.RedisCommands;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import org.springframework.data.redis.connection.ClusterSlotHashUtil;
import org.springframework.data.redis.connection.RedisClusterConnection;
import org.springframework.data.redis.connection.RedisClusterNode;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.ReturnType;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.ClassUtils;

/**
 * Redis through the connections of Spring Data. Never part of a transaction of the application: its connections are borrowed here, not
 * taken from the thread. In a Cluster, a cursor begins with the number of the primary.
 */
class SpringDataCommands implements RedisCommands {
    private static final byte[] SCAN = bytes("return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])");
    private static final String END = "0";

    private final RedisConnectionFactory connections;
    /** The type with which this driver returns replies of every type. */
    private final ReturnType anyReply;

    SpringDataCommands(RedisConnectionFactory connections, ReturnType anyReply) {
        this.connections = connections;
        this.anyReply = anyReply;
    }

    /**
     * Commands through the application's connections.
     *
     * @param timeout the longest time to wait for a reply, with Lettuce
     */
    static SpringDataCommands of(RedisConnectionFactory connections, Duration timeout) {
        if (isPresent("io.lettuce.core.RedisClient") && connections instanceof LettuceConnectionFactory) {
            return new LettuceCommands(connections, timeout);
        }
        // With Jedis, an array must be an array, and a "value" is whatever Redis replied.
        boolean isJedis = isPresent("redis.clients.jedis.Jedis") && connections instanceof JedisConnectionFactory;
        return new SpringDataCommands(connections, isJedis ? ReturnType.VALUE : ReturnType.MULTI);
    }

    private static boolean isPresent(String driver) {
        return ClassUtils.isPresent(driver, SpringDataCommands.class.getClassLoader());
    }

    @Override
    public Object evalsha(byte[] sha1, byte[] key, byte[]... arguments) {
        return on(redis -> redis.scriptingCommands().evalSha(sha1, anyReply, 1, all(key, arguments)));
    }

    @Override
    public Object eval(byte[] script, byte[] key, byte[]... arguments) {
        return on(redis -> redis.scriptingCommands().eval(script, anyReply, 1, all(key, arguments)));
    }

    @Override
    public Page scan(String cursor, String pattern, int count) {
        // A key of the pattern goes with a scan: Redis checks the right to it, although no script reads it.
        String key = pattern.substring(0, pattern.length() - 1) + "scan";
        List<byte[]> primaries = on(redis -> keysOfPrimaries(redis, key));
        int colon = cursor.indexOf(':');
        int primary = colon < 0 ? 0 : Integer.parseInt(cursor.substring(0, colon));
        List<?> page = (List<?>) eval(
                SCAN,
                primaries.get(primary),
                bytes(cursor.substring(colon + 1)),
                bytes(pattern),
                bytes(Integer.toString(count)));
        String next = new String((byte[]) page.get(0), StandardCharsets.US_ASCII);
        List<byte[]> keys = new ArrayList<>();
        ((List<?>) page.get(1)).forEach(found -> keys.add((byte[]) found));
        if (!next.equals(END)) {
            return new Page(primary + ":" + next, keys);
        }
        return new Page(primary + 1 == primaries.size() ? END : (primary + 1) + ":" + END, keys);
    }

    /** One key of each primary, in the order of their slots: nodes list each other in different orders. */
    private static List<byte[]> keysOfPrimaries(RedisConnection redis, String key) {
        if (!(redis instanceof RedisClusterConnection cluster)) {
            return List.of(bytes(key));
        }
        SortedMap<Integer, byte[]> keys = new TreeMap<>();
        for (RedisClusterNode node : cluster.clusterGetNodes()) {
            if (node.isMaster() && !node.getSlotRange().getSlots().isEmpty()) {
                keys.put(Collections.min(node.getSlotRange().getSlots()), keyOf(node, key));
            }
        }
        return List.copyOf(keys.values());
    }

    private static byte[] keyOf(RedisClusterNode node, String key) {
        int number = 0;
        while (!node.servesSlot(ClusterSlotHashUtil.calculateSlot(key + number))) {
            number++;
        }
        return bytes(key + number);
    }

    <T> T on(Function<RedisConnection, T> work) {
        try (RedisConnection redis = connections.getConnection()) {
            return work.apply(redis);
        }
    }

    static byte[][] all(byte[] key, byte[]... arguments) {
        byte[][] all = new byte[arguments.length + 1][];
        all[0] = key;
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        return all;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
