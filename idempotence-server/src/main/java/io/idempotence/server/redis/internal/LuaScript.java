package io.idempotence.server.redis.internal;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A script on one key. Redis caches it under its SHA-1 until it restarts, fails over or flushes its scripts. */
public final class LuaScript {
    private static final Pattern INCLUDE = Pattern.compile("(?m)^--#include (\\S+)\r?\n");

    private final byte[] source;
    private final byte[] sha1;
    private final List<Class<?>> replies;
    private final boolean repeatable;

    private LuaScript(byte[] source, List<Class<?>> replies, boolean repeatable) {
        this.source = source;
        this.replies = replies;
        this.repeatable = repeatable;
        this.sha1 = hexSha1(source).getBytes(StandardCharsets.US_ASCII);
    }

    /**
     * Loads a script, with shared code in place of {@code --#include}. The include comes after the most frequent path, so that it does not
     * slow that path.
     *
     * @param replies the types that a reply can have, or its first element if it is a list
     */
    public static LuaScript load(String name, Class<?>... replies) {
        return load(name, List.of(replies), true);
    }

    /** Loads a script whose second run has another reply than the first, even for the same owner. */
    public static LuaScript loadUnrepeatable(String name, Class<?>... replies) {
        return load(name, List.of(replies), false);
    }

    private static LuaScript load(String name, List<Class<?>> replies, boolean repeatable) {
        return new LuaScript(withIncludes(name, read(name)).getBytes(StandardCharsets.UTF_8), replies, repeatable);
    }

    /** Whether it may run again after a run whose reply was lost. */
    public boolean isRepeatable() {
        return repeatable;
    }

    /** Whether a reply other than an error can be one of this script. */
    public boolean canReturn(Object reply) {
        Object first = reply instanceof List<?> list && !list.isEmpty() ? list.get(0) : reply;
        for (Class<?> type : replies) {
            if (type.isInstance(first)) {
                return true;
            }
        }
        return false;
    }

    /** Resolves includes. One that is not resolved would be a comment, and the script would fail at its first duplicate. */
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

    /** The source for {@code EVAL}, after which the server has the script cached. A shared array that must not be changed. */
    public byte[] source() {
        return source;
    }

    /** The SHA-1 in hexadecimal digits for {@code EVALSHA}. A shared array that must not be changed. */
    public byte[] sha1() {
        return sha1;
    }

    private static String hexSha1(byte[] source) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(source));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-1", e);
        }
    }
}
