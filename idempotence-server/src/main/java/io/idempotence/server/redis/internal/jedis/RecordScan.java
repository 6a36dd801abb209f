package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.redis.internal.Redis.ScannedKey;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisRedirectionException;

/** A walk over the keys of some servers with {@code SCAN}. A script reads each page's keys, in one more round trip. */
final class RecordScan implements Iterator<List<ScannedKey>> {
    private static final String BEGIN = "0";

    private final Redis redis;
    private final Deque<RedisServer> servers;
    private final String pattern;
    private final int pageSize;
    private final LuaScript script;
    private String cursor = BEGIN;

    RecordScan(Redis redis, List<RedisServer> servers, String pattern, int pageSize, LuaScript script) {
        this.redis = redis;
        this.servers = new ArrayDeque<>(servers);
        this.pattern = pattern;
        this.pageSize = pageSize;
        this.script = script;
    }

    @Override
    public boolean hasNext() {
        return !servers.isEmpty();
    }

    @Override
    public List<ScannedKey> next() {
        RedisServer server = servers.peek();
        if (server == null) {
            throw new NoSuchElementException("every server was visited");
        }
        List<?> page = (List<?>) server.ask(
                RedisCall.of(Protocol.Command.SCAN, cursor, "MATCH", pattern, "COUNT", Integer.toString(pageSize)));
        List<byte[]> keys = new ArrayList<>();
        ((List<?>) page.get(1)).forEach(key -> keys.add((byte[]) key));
        List<ScannedKey> reads = read(server, keys);
        cursor = new String((byte[]) page.get(0), StandardCharsets.US_ASCII);
        if (cursor.equals(BEGIN)) {
            servers.remove();
        }
        return reads;
    }

    private List<ScannedKey> read(RedisServer server, List<byte[]> keys) {
        List<ScannedKey> reads = new ArrayList<>(keys.size());
        if (!keys.isEmpty()) {
            // EVAL and not EVALSHA: commands that are sent together cannot be repeated one by one.
            List<Object> replies = server.ask(
                    keys.stream().map(key -> RedisCall.eval(script, key)).toList());
            for (int i = 0; i < keys.size(); i++) {
                byte[] key = keys.get(i);
                Object reply = replies.get(i);
                reads.add(new ScannedKey(key, reply instanceof JedisRedirectionException ? elsewhere(key) : reply));
            }
        }
        return reads;
    }

    /** Reads a key whose slot has moved since its name was read. */
    private Object elsewhere(byte[] key) {
        try {
            return redis.run(script, key);
        } catch (NothingWrittenException e) {
            return e.reason();
        }
    }
}
