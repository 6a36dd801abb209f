package io.idempotence.server.redis;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.exceptions.JedisRedirectionException;

/** Redis through connections that were opened here: to a single server, to a primary behind Sentinels, or to a Cluster. */
final class PooledRedis implements Redis {
    private final String name;
    private final RedisTopology topology;
    private final @Nullable ReplicaWait replicaWait;
    private volatile long lastResponse = System.nanoTime();

    PooledRedis(String name, RedisTopology topology, @Nullable ReplicaWait replicaWait) {
        this.name = name;
        this.topology = topology;
        this.replicaWait = replicaWait;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Object run(LuaScript script, byte[] key, byte[]... args) {
        return run(script, key, args, PooledRedis::execute);
    }

    @Override
    public Object runReplicated(LuaScript script, byte[] key, byte[]... args) {
        ReplicaWait wanted = replicaWait;
        return wanted == null
                ? run(script, key, args)
                : run(script, key, args, (connection, call) -> executeAndWait(connection, call, wanted));
    }

    @Override
    public Iterator<List<ScannedKey>> scan(String pattern, int pageSize, LuaScript read) {
        return new RecordScan(this, topology.primaries(), pattern, pageSize, read);
    }

    @Override
    public String reason(RuntimeException e) {
        return JedisErrors.reason(e);
    }

    @Override
    public void close() {
        topology.close();
    }

    /** Fails unless the user has all rights that records need, and additional ones. */
    void checkRights(byte[] key, List<RedisCall> more) {
        List<RedisCall> all = new ArrayList<>(more);
        if (replicaWait != null) {
            // Waits for no replica.
            all.add(RedisCall.of(Protocol.Command.WAIT, "0", "1"));
        }
        UserRights.check(name, key, call -> execute(key, call), all);
    }

    private interface RoundTrip {
        Object on(Connection connection, RedisCall call);
    }

    private Object run(LuaScript script, byte[] key, byte[][] args, RoundTrip roundTrip) {
        return send(key, roundTrip, RedisCall.evalsha(script, key, args), RedisCall.eval(script, key, args));
    }

    private Object execute(byte[] key, RedisCall call) {
        return send(key, PooledRedis::execute, call, call);
    }

    private static Object execute(Connection connection, RedisCall call) {
        return RedisServer.orThrow(RedisServer.ask(connection, List.of(call)).get(0));
    }

    /** Sends a call and {@code WAIT} in one round trip. The read timeout is extended by the time that the replicas may take. */
    private static Object executeAndWait(Connection connection, RedisCall call, ReplicaWait wanted) {
        int usual = connection.getSoTimeout();
        long wait = wanted.timeout().toMillis();
        connection.setSoTimeout(Math.toIntExact(usual + wait));
        List<Object> replies = RedisServer.ask(connection, List.of(call, wanted.call()));
        connection.setSoTimeout(usual);
        Object reply = RedisServer.orThrow(replies.get(0));
        wanted.check(replies.get(1), reply);
        return reply;
    }

    /**
     * Sends a call on a connection. A connection to a server that is not the primary is not used again, because a new one may lead to
     * another server.
     */
    private Object askOn(Connection connection, RoundTrip roundTrip, RedisCall call) {
        try {
            Object reply = roundTrip.on(connection, call);
            lastResponse = System.nanoTime();
            return reply;
        } catch (JedisDataException e) {
            lastResponse = System.nanoTime();
            if (RedisErrors.isNoPrimary(e)) {
                connection.setBroken();
            }
            throw e;
        }
    }

    /**
     * Whether the server is only slow: other connections got replies meanwhile. Reopening all connections would make an overloaded server
     * slower.
     */
    private boolean isOnlySlow(JedisException e, long sentAt) {
        return JedisErrors.isTimeout(e) && lastResponse - sentAt > 0;
    }

    /**
     * Sends a call to the server that has a key. In a Cluster a call follows its slot to another server, and is repeated after a broken
     * connection: a script may run twice for the same owner.
     *
     * @param orIfUnknown the call to send instead to a server that does not have the script
     */
    private Object send(byte[] key, RoundTrip roundTrip, RedisCall call, RedisCall orIfUnknown) {
        long begin = System.nanoTime();
        RedisCall next = call;
        JedisRedirectionException redirection = null;
        boolean inDoubt = false;
        int attempts = 0;
        while (true) {
            boolean sent = false;
            long sentAt = System.nanoTime();
            try (Connection connection = topology.connectionFor(key, redirection)) {
                sent = true;
                sentAt = System.nanoTime();
                return askOn(connection, roundTrip, next);
            } catch (JedisNoScriptException e) {
                next = orIfUnknown;
            } catch (JedisException e) {
                attempts++;
                inDoubt |= sent && !(e instanceof JedisDataException);
                if (sent && JedisErrors.connectionsAreStale(e) && !isOnlySlow(e, sentAt)) {
                    topology.dropConnections();
                }
                if (!topology.anotherWay(e, attempts, System.nanoTime() - begin)) {
                    throw inDoubt ? e : new NothingWrittenException(e);
                }
                redirection = e instanceof JedisRedirectionException other ? other : null;
            }
        }
    }
}
