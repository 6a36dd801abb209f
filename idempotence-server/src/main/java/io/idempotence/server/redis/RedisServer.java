package io.idempotence.server.redis;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.Pool;

/** A server that can be called directly, whatever keys it has. */
@FunctionalInterface
interface RedisServer {
    Logger LOG = LoggerFactory.getLogger(RedisIdempotenceStorage.class);

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

    /** Its self-description, unknown if the user may not read it. */
    default ServerInfo info() {
        try {
            return ServerInfo.parse(ask(RedisCall.of(Protocol.Command.INFO)));
        } catch (JedisException e) {
            LOG.debug(
                    "INFO was refused, so the configuration of this Redis is unknown; give the user the right to INFO",
                    e);
            return ServerInfo.UNKNOWN;
        }
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

    /**
     * Checks the reply to the end of a round trip, which may be an error only if all replies are. A server that is loading, say, replies to
     * everything with an error. Then there is no value that could reach the wrong caller.
     */
    static void checkEnd(Object reply, Stream<Object> others) {
        if (reply instanceof JedisDataException error && !others.allMatch(RedisServer::isError)) {
            throw new JedisConnectionException("Redis refused the end of a batch: " + error.getMessage(), error);
        }
    }

    /** Sends calls together on a connection. */
    static List<Object> ask(Connection connection, List<RedisCall> calls) {
        List<RedisCall> sent = new ArrayList<>(calls);
        sent.add(RedisCall.endOfRoundTrip(System.nanoTime()));
        boolean isWhole = false;
        try {
            sent.forEach(call -> call.sendOn(connection));
            List<Object> replies = connection.getMany(sent.size());
            for (int i = 0; i < sent.size(); i++) {
                sent.get(i).checked(replies.get(i));
            }
            List<Object> own = replies.subList(0, calls.size());
            checkEnd(replies.get(calls.size()), own.stream());
            isWhole = true;
            return own;
        } finally {
            if (!isWhole) {
                // A reply that was not read would reach the next caller.
                connection.setBroken();
            }
        }
    }
}
