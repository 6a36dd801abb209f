package io.idempotence.server.redis;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.springframework.data.redis.connection.ClusterSlotHashUtil;
import org.springframework.data.redis.connection.RedisClusterConnection;
import org.springframework.data.redis.connection.RedisClusterNode;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.ReturnType;

/** The commands over Spring Data's connections, whatever its driver. In a Cluster a cursor begins with the number of the primary. */
record SpringDataRedis(RedisConnectionFactory connections) implements RedisCommands {
    private static final byte[] SCAN = bytes("return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])");

    @Override
    public Object evalsha(byte[] sha1, byte[] key, byte[]... arguments) {
        return on(redis -> redis.scriptingCommands().evalSha(sha1, ReturnType.MULTI, 1, all(key, arguments)));
    }

    @Override
    public Object eval(byte[] script, byte[] key, byte[]... arguments) {
        return on(redis -> redis.scriptingCommands().eval(script, ReturnType.MULTI, 1, all(key, arguments)));
    }

    @Override
    public Page scan(String cursor, String pattern, int count) {
        return on(redis -> {
            List<byte[]> primaries = keysOfPrimaries(redis);
            int primary = cursor.indexOf(':') < 0 ? 0 : Integer.parseInt(cursor.substring(0, cursor.indexOf(':')));
            List<?> page = (List<?>) eval(
                    SCAN,
                    primaries.get(primary),
                    bytes(cursor.substring(cursor.indexOf(':') + 1)),
                    bytes(pattern),
                    bytes(Integer.toString(count)));
            String next = new String((byte[]) page.get(0), StandardCharsets.US_ASCII);
            List<byte[]> keys = new ArrayList<>();
            ((List<?>) page.get(1)).forEach(key -> keys.add((byte[]) key));
            if (!next.equals("0")) {
                return new Page(primary + ":" + next, keys);
            }
            return new Page(primary + 1 == primaries.size() ? "0" : primary + 1 + ":0", keys);
        });
    }

    /** For each primary some key that it has, always in the same order. */
    private static List<byte[]> keysOfPrimaries(RedisConnection redis) {
        List<byte[]> keys = new ArrayList<>();
        if (redis instanceof RedisClusterConnection cluster) {
            for (RedisClusterNode node : cluster.clusterGetNodes()) {
                if (node.isMaster()) {
                    keys.add(keyOf(node));
                }
            }
            return keys;
        }
        return List.of(bytes("any"));
    }

    private static byte[] keyOf(RedisClusterNode node) {
        int number = 0;
        while (!node.servesSlot(ClusterSlotHashUtil.calculateSlot(Integer.toString(number)))) {
            number++;
        }
        return bytes(Integer.toString(number));
    }

    private <T> T on(Function<RedisConnection, T> work) {
        try (RedisConnection redis = connections.getConnection()) {
            return work.apply(redis);
        }
    }

    private static byte[][] all(byte[] key, byte[]... arguments) {
        byte[][] all = new byte[arguments.length + 1][];
        all[0] = key;
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        return all;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
