package io.idempotence.server.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisAskDataException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.exceptions.JedisRedirectionException;

/** A script on one key. Redis knows it by its SHA-1 until it restarts, fails over or is told to forget. */
final class LuaScript {
    private static final Pattern INCLUDE = Pattern.compile("(?m)^--#include (\\S+)\r?\n");

    private final byte[] source;
    private final byte[] sha1;

    private LuaScript(byte[] source) {
        this.source = source;
        this.sha1 = hexSha1(source).getBytes(StandardCharsets.US_ASCII);
    }

    /**
     * Where a script says {@code --#include}, what scripts share is put in: behind what is run most, which it would cost time.
     */
    static LuaScript load(String name) {
        return new LuaScript(withIncludes(name, read(name)).getBytes(StandardCharsets.UTF_8));
    }

    /** An include that was left would be a comment, and the script would fail at its first duplicate. */
    static String withIncludes(String name, String source) {
        String whole = INCLUDE.matcher(source).replaceAll(file -> Matcher.quoteReplacement(read(file.group(1))));
        if (whole.contains("--#include")) {
            throw new IllegalStateException(name + " has an --#include that is not a line of its own");
        }
        return whole;
    }

    private static String read(String name) {
        try (InputStream in = LuaScript.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException(name + " is missing from the jar of idempotence-server");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(name, e);
        }
    }

    /** One round trip; a second one, with the source, only when the server does not know the script. */
    Object run(UnifiedJedis client, byte[] key, byte[]... args) {
        List<byte[]> keys = List.of(key);
        List<byte[]> argv = List.of(args);
        try {
            return client.evalsha(sha1, keys, argv);
        } catch (JedisNoScriptException e) {
            return client.eval(source, keys, argv);
        }
    }

    /** The same with a WAIT behind it, on one connection and in one round trip. */
    Object runReplicated(UnifiedJedis client, Replication wanted, byte[] key, byte[]... args) {
        List<byte[]> keys = List.of(key);
        List<byte[]> argv = List.of(args);
        try {
            return replicated(client.pipelined(), wanted, key, pipeline -> pipeline.evalsha(sha1, keys, argv));
        } catch (JedisNoScriptException e) {
            return replicated(client.pipelined(), wanted, key, pipeline -> pipeline.eval(source, keys, argv));
        } catch (JedisRedirectionException e) {
            // A pipeline does not follow its slot to another node; a plain run does, and learns the way. It does not
            // when the slot is still under way: then each run has to ask.
            run(client, key, args);
            AbstractPipeline there = e instanceof JedisAskDataException ? asking(client, e) : client.pipelined();
            return replicated(there, wanted, key, pipeline -> pipeline.eval(source, keys, argv));
        }
    }

    private static AbstractPipeline asking(UnifiedJedis client, JedisRedirectionException ask) {
        ConnectionPool node = client instanceof RedisClusterClient cluster
                ? cluster.getClusterNodes().get(ask.getTargetNode().toString())
                : null;
        if (node == null) {
            throw ask;
        }
        Pipeline pipeline = new Pipeline(node.getResource(), true);
        pipeline.sendCommand(Protocol.Command.ASKING, new byte[0][]);
        return pipeline;
    }

    private static Object replicated(
            AbstractPipeline opened,
            Replication wanted,
            byte[] key,
            Function<AbstractPipeline, Response<Object>> script) {
        try (AbstractPipeline pipeline = opened) {
            Response<Object> reply = script.apply(pipeline);
            Response<Long> replicas = pipeline.waitReplicas(
                    key, wanted.replicas(), wanted.timeout().toMillis());
            pipeline.sync();
            Object answer = reply.get();
            if (replicas.get() < wanted.replicas()) {
                throw new Replication.TooFewException(replicas.get(), wanted.replicas(), answer);
            }
            return answer;
        }
    }

    /** Adds a run to a pipeline, with the source: a pipeline cannot ask again. */
    Response<Object> add(AbstractPipeline pipeline, byte[] key) {
        return pipeline.eval(source, List.of(key), List.of());
    }

    private static String hexSha1(byte[] source) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(source));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-1", e);
        }
    }
}
