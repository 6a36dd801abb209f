package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.LuaScript;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.args.Rawable;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** A command and its arguments. */
final class RedisCall {
    private static final byte[] ONE_KEY = bytes("1");

    private final Protocol.Command command;
    private final byte[][] arguments;
    private final @Nullable LuaScript script;

    private RedisCall(Protocol.Command command, byte[][] arguments, @Nullable LuaScript script) {
        this.command = command;
        this.arguments = arguments;
        this.script = script;
    }

    static RedisCall of(Protocol.Command command, String... arguments) {
        byte[][] encoded = new byte[arguments.length][];
        for (int i = 0; i < arguments.length; i++) {
            encoded[i] = bytes(arguments[i]);
        }
        return new RedisCall(command, encoded, null);
    }

    /**
     * The last call of a round trip. Its reply must be the text that was sent, which shows a missing or surplus reply before it. {@code
     * PING} could do it as well, but Redis refuses that while it cannot save to its disk.
     */
    static RedisCall endOfRoundTrip(long sentAt) {
        byte[] text = new byte[2 * Long.BYTES];
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) Character.forDigit((int) (sentAt >>> (4 * i)) & 0xf, 16);
        }
        return new RedisCall(Protocol.Command.ECHO, new byte[][] {text}, null);
    }

    /** Runs a script that the server has cached; otherwise the reply is {@code NOSCRIPT}. */
    static RedisCall evalsha(LuaScript script, byte[] key, byte[]... args) {
        byte[][] arguments = new byte[3 + args.length][];
        arguments[0] = script.sha1();
        arguments[1] = ONE_KEY;
        arguments[2] = key;
        System.arraycopy(args, 0, arguments, 3, args.length);
        return new RedisCall(Protocol.Command.EVALSHA, arguments, script);
    }

    /** Runs a script on any server, which then has it cached. */
    static RedisCall eval(LuaScript script, byte[] key, byte[]... args) {
        return evalsha(script, key, args).withSource();
    }

    /** The same call for a server that does not have the script. */
    RedisCall withSource() {
        if (script == null) {
            return this;
        }
        byte[][] other = arguments();
        other[0] = script.source();
        return new RedisCall(Protocol.Command.EVAL, other, script);
    }

    /** Whether it may be executed again. The commands that are no scripts write nothing. */
    boolean isRepeatable() {
        return script == null || script.isRepeatable();
    }

    /**
     * The reply to this call.
     *
     * @throws JedisConnectionException if it is another call's
     */
    Object checked(@Nullable Object reply) {
        if (reply != null && (reply instanceof JedisDataException || fits(reply))) {
            return reply;
        }
        throw new JedisConnectionException("Redis sent a reply that does not fit its command, " + command);
    }

    private boolean fits(Object reply) {
        if (script != null) {
            return script.canReturn(reply);
        }
        return switch (command) {
            case WAIT -> reply instanceof Long;
            case ASKING -> reply instanceof byte[];
            case ECHO -> reply instanceof byte[] text && Arrays.equals(text, arguments[0]);
            default -> true;
        };
    }

    private int bytes() {
        int bytes = 0;
        for (byte[] argument : arguments) {
            bytes += argument.length + 8;
        }
        return bytes;
    }

    /** About how long calls are on the wire. */
    static int bytes(List<RedisCall> calls) {
        int bytes = 0;
        for (RedisCall call : calls) {
            bytes += call.bytes();
        }
        return bytes;
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

    /** The arguments of one call after the other, as the driver sends them. The driver's own class makes several lists for each call. */
    static final class Arguments extends CommandArguments {
        private RedisCall call;

        /** @param any one of the calls, because the driver's class does not begin without a command */
        Arguments(RedisCall any) {
            super(any.command);
            this.call = any;
        }

        /** Moves on to the next call. */
        Arguments moveTo(RedisCall next) {
            call = next;
            return this;
        }

        @Override
        public ProtocolCommand getCommand() {
            return call.command;
        }

        @Override
        public int size() {
            return 1 + call.arguments.length;
        }

        @Override
        public Rawable get(int index) {
            byte[] raw = index == 0 ? call.command.getRaw() : call.arguments[index - 1];
            // The driver would copy an array.
            return () -> raw;
        }

        @Override
        public Iterator<Rawable> iterator() {
            return new Iterator<>() {
                private int index;

                @Override
                public boolean hasNext() {
                    return index < size();
                }

                @Override
                public Rawable next() {
                    return get(index++);
                }
            };
        }
    }
}
