package io.idempotence.server.redis;

import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.Pool;

/** A server that can be called directly, whatever keys it has. */
@FunctionalInterface
interface RedisServer {
    /**
     * Sends calls together.
     *
     * @return a reply for each, a {@link JedisDataException} if Redis replied with an error; then the reply to {@link ReplicaWait#call}, if
     *     the server is one whose replicas are waited for
     */
    List<Object> ask(List<RedisCall> calls);

    /** Sends one call, and throws an error reply. */
    default Object ask(RedisCall call) {
        return orThrow(ask(List.of(call)).get(0));
    }

    static boolean isError(Object reply) {
        return reply instanceof JedisDataException;
    }

    static Object orThrow(Object reply) {
        if (reply instanceof JedisDataException error) {
            throw error;
        }
        return reply;
    }

    /** The server behind a pool of connections. */
    static RedisServer behind(Pool<Connection> pool) {
        return calls -> {
            try (Connection connection = pool.getResource()) {
                return ask(connection, calls);
            }
        };
    }

    /** Sends calls together on a connection. */
    static List<Object> ask(Connection connection, List<RedisCall> calls) {
        // A reply too many would give each call the reply to another.
        List<RedisCall> sent = new ArrayList<>(calls);
        sent.add(RedisCall.of(Protocol.Command.PING, Long.toString(System.nanoTime())));
        boolean isWhole = false;
        try {
            sent.forEach(call -> call.sendOn(connection));
            List<Object> replies = connection.getMany(sent.size());
            for (int i = 0; i < sent.size(); i++) {
                if (!isError(replies.get(i)) && !sent.get(i).canHave(replies.get(i))) {
                    throw new JedisConnectionException("a reply is none that its command can have");
                }
            }
            isWhole = true;
            return replies.subList(0, calls.size());
        } finally {
            if (!isWhole) {
                // A reply that was not read would reach the next caller.
                connection.setBroken();
            }
        }
    }
}
