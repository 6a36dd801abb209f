package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.ApplicationRedis;
import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.RedisErrors;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.util.Pool;

/** The application's own client, of any class. The client itself handles broken connections and redirections. */
public final class JedisClientRedis extends ApplicationRedis {
    private final UnifiedJedis client;
    private final Runnable closeIdle = new AtMostOncePerSecond(() -> pools().forEach(Pool::clear), System::nanoTime);

    public JedisClientRedis(UnifiedJedis client) {
        this.client = client;
    }

    @Override
    public String name() {
        return "Redis (the application's client)";
    }

    @Override
    protected Object send(LuaScript script, byte[] key, byte[]... args) {
        RedisCall byName = RedisCall.evalsha(script, key, args);
        CountedCommand counted = new CountedCommand(byName.command(), 0);
        try {
            return send(key, byName, counted);
        } catch (JedisNoScriptException e) {
            // The last command was refused. Whether an earlier one was executed cannot be told.
            RedisCall withSource = RedisCall.eval(script, key, args);
            return send(key, withSource, new CountedCommand(withSource.command(), counted.written - 1));
        }
    }

    @Override
    public Iterator<List<ScannedKey>> scan(String pattern, int pageSize, LuaScript read) {
        return new RecordScan(this, servers(), pattern, pageSize, read);
    }

    @Override
    public String reason(RuntimeException e) {
        return JedisErrors.reason(e);
    }

    @SuppressWarnings("deprecation") // The replacement does not exist in every supported version.
    private Object send(byte[] key, RedisCall call, CountedCommand command) {
        try {
            return client.sendCommand(key, command, call.arguments());
        } catch (JedisNoScriptException e) {
            throw e;
        } catch (JedisException e) {
            if (RedisErrors.isReplica(e)) {
                closeIdle.run();
            }
            boolean refused = command.written == 1 && e instanceof JedisDataException;
            throw command.written == 0 || refused ? new NothingWrittenException(e) : e;
        }
    }

    /**
     * A command that counts how often the driver has written it to a connection. A client may send it several times, and its last failure
     * does not show whether an earlier one was executed. A driver that reads the bytes for other reasons makes it look written, which is
     * the safe side: a Cluster client of Jedis 8 does.
     */
    private static final class CountedCommand implements ProtocolCommand {
        private final Protocol.Command command;
        private int written;

        CountedCommand(Protocol.Command command, int written) {
            this.command = command;
            this.written = written;
        }

        @Override
        public byte[] getRaw() {
            written++;
            return command.getRaw();
        }
    }

    private List<RedisServer> servers() {
        List<RedisServer> servers = pools().stream().map(RedisServer::behind).toList();
        if (servers.isEmpty()) {
            return List.of(this::oneByOne);
        }
        return servers.size() == 1
                ? servers
                : servers.stream()
                        .filter(server -> !server.info().isClusterReplica())
                        .toList();
    }

    @SuppressWarnings("deprecation") // The replacement does not exist in every supported version.
    private List<Object> oneByOne(List<RedisCall> calls) {
        List<Object> replies = new ArrayList<>();
        for (RedisCall call : calls) {
            try {
                replies.add(client.sendCommand(call.command(), call.arguments()));
            } catch (JedisDataException e) {
                replies.add(e);
            }
        }
        return replies;
    }

    /**
     * The client's pools, or none if the client does not expose them. The classes of the clients differ between versions, these methods do
     * not.
     */
    private List<Pool<Connection>> pools() {
        if (shown("getPool") instanceof Pool<?> pool) {
            return List.of(ofConnections(pool));
        }
        for (String method : List.of("getClusterNodes", "getPrimaryNodesConnectionMap")) {
            if (shown(method) instanceof Map<?, ?> nodes) {
                return nodes.values().stream()
                        .map(JedisClientRedis::ofConnections)
                        .toList();
            }
        }
        return List.of();
    }

    @SuppressWarnings("unchecked") // These pools contain nothing else.
    private static Pool<Connection> ofConnections(Object pool) {
        return (Pool<Connection>) pool;
    }

    private @Nullable Object shown(String method) {
        try {
            return client.getClass().getMethod(method).invoke(client);
        } catch (NoSuchMethodException e) {
            return null;
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new IllegalStateException(method + " of " + client.getClass() + " cannot be called", e);
        }
    }
}
