package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.ServerInfo;
import java.util.List;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
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

    /** Its self-description, unknown if the user may not read it. */
    default ServerInfo info() {
        try {
            return ServerInfo.parse(ask(RedisCall.of(Protocol.Command.INFO)));
        } catch (JedisException e) {
            Redis.LOG.debug(
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
                return RoundTripSender.ask(connection, calls);
            }
        };
    }
}
