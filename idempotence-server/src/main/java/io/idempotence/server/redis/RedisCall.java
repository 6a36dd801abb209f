package io.idempotence.server.redis;

import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;

/** A command and its arguments. */
final class RedisCall {
    private final Protocol.Command command;
    private final byte[][] arguments;

    private RedisCall(Protocol.Command command, byte[][] arguments) {
        this.command = command;
        this.arguments = arguments;
    }

    static RedisCall of(Protocol.Command command, String... arguments) {
        return new RedisCall(command, Stream.of(arguments).map(RedisCall::bytes).toArray(byte[][]::new));
    }

    /** Runs a script that the server has cached; otherwise the reply is {@code NOSCRIPT}. */
    static RedisCall evalsha(LuaScript script, byte[] key, byte[]... args) {
        return script(Protocol.Command.EVALSHA, script.sha1(), key, args);
    }

    /** Runs a script on any server, which then has it cached. */
    static RedisCall eval(LuaScript script, byte[] key, byte[]... args) {
        return script(Protocol.Command.EVAL, script.source(), key, args);
    }

    private static RedisCall script(Protocol.Command command, byte[] script, byte[] key, byte[]... args) {
        return new RedisCall(
                command,
                Stream.concat(Stream.of(script, bytes("1"), key), Stream.of(args))
                        .toArray(byte[][]::new));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A reply as text. */
    static String text(Object reply) {
        return new String((byte[]) reply, StandardCharsets.UTF_8);
    }

    Protocol.Command command() {
        return command;
    }

    byte[][] arguments() {
        return arguments.clone();
    }

    void sendOn(Connection connection) {
        connection.sendCommand(command, arguments);
    }
}
