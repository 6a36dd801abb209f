package io.idempotence.server.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

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

    /** For {@code EVAL}, which also makes the server know it. Shared: not to be changed. */
    byte[] source() {
        return source;
    }

    /** Its SHA-1 in hexadecimal digits, for {@code EVALSHA}. Shared: not to be changed. */
    byte[] sha1() {
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
