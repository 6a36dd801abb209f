package io.idempotence.server.redis;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.exceptions.JedisRedirectionException;

/** Redis through connections that were opened here: to a single server, to a primary behind Sentinels, or to a Cluster. */
final class PooledRedis implements Redis {
    /** How many runs share a round trip. Not more, because a connection that hangs delays all of them. */
    private static final int RUNS_PER_ROUND_TRIP = 16;

    private final String name;
    private final RedisTopology topology;
    private final @Nullable ReplicaWait replicaWait;

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
        return send(key, RedisCall.evalsha(script, key, args), false).get(0);
    }

    @Override
    public Object runReplicated(LuaScript script, byte[] key, byte[]... args) {
        List<Object> replies = send(key, RedisCall.evalsha(script, key, args), true);
        if (replicaWait != null) {
            replicaWait.check(replies.get(1), replies.get(0));
        }
        return replies.get(0);
    }

    @Override
    public int runsPerRoundTrip() {
        return topology.onlyServer(true) == null ? 1 : RUNS_PER_ROUND_TRIP;
    }

    @Override
    public List<Object> runAllReplicated(LuaScript script, List<ScriptRun> runs) {
        RedisServer server = topology.onlyServer(true);
        if (server == null) {
            return Redis.super.runAllReplicated(script, runs);
        }
        List<RedisCall> calls = new ArrayList<>(runs.size());
        runs.forEach(run -> calls.add(RedisCall.evalsha(script, run.key(), run.arguments())));
        List<Object> replies = server.ask(calls);
        if (replicaWait != null) {
            replicaWait.check(replies.get(runs.size()), replies.get(0));
        }
        List<Object> outcomes = new ArrayList<>(runs.size());
        for (int i = 0; i < runs.size(); i++) {
            Object reply = replies.get(i);
            // A run alone can also load the script, or find another primary.
            outcomes.add(RedisServer.isError(reply) ? replyOrFailure(script, runs.get(i)) : reply);
        }
        return outcomes;
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
        UserRights.check(name, key, call -> send(key, call, false).get(0), all);
    }

    /**
     * Sends a call to the server that has a key. In a Cluster a call follows its slot to another server, and is repeated after a broken
     * connection: a script may run twice for the same owner. Elsewhere a call is repeated once, after a failure that it shared with
     * others: one broken connection must not look like an outage. An unrepeatable call that may have been executed is never repeated.
     */
    private List<Object> send(byte[] key, RedisCall call, boolean replicated) {
        long begin = System.nanoTime();
        RedisCall next = call;
        JedisRedirectionException redirection = null;
        boolean inDoubt = false;
        int attempts = 0;
        while (true) {
            RuntimeException failure;
            try {
                List<Object> replies = topology.ask(key, next, replicated, redirection);
                RedisServer.orThrow(replies.get(0));
                return replies;
            } catch (NothingWrittenException e) {
                failure = e.reason();
            } catch (JedisDataException e) {
                failure = e;
            } catch (JedisException e) {
                inDoubt = true;
                failure = e;
            }
            if (failure instanceof JedisNoScriptException && next == call) {
                next = call.withSource();
                continue;
            }
            attempts++;
            boolean repeats = (attempts == 1 && isOnlyOfItsConnection(failure))
                    || (failure instanceof JedisException e
                            && topology.mayRepeat(e, attempts, System.nanoTime() - begin));
            if (!repeats || (inDoubt && !call.isRepeatable())) {
                throw inDoubt ? failure : new NothingWrittenException(failure);
            }
            redirection = failure instanceof JedisRedirectionException other ? other : null;
        }
    }

    private static boolean isOnlyOfItsConnection(RuntimeException failure) {
        return failure instanceof FlatCombiner.FollowerFailedException && !JedisErrors.isTimeout(failure);
    }
}
