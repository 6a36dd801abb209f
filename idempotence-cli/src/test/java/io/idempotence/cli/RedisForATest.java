package io.idempotence.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import redis.embedded.RedisServer;

/** A real Redis on a free port of the loopback address, without persistence. Closing it stops it. */
final class RedisForATest implements AutoCloseable {
    private final RedisServer server;
    private final int port;

    private RedisForATest(RedisServer server, int port) {
        this.server = server;
        this.port = port;
    }

    /**
     * Starts it.
     *
     * @param settings further lines of its configuration, as {@code "requirepass secret"}
     */
    static RedisForATest start(String... settings) throws IOException {
        int port = freePort();
        var builder = RedisServer.newRedisServer().port(port).bind("127.0.0.1").setting("save \"\"");
        for (String setting : settings) {
            builder.setting(setting);
        }
        RedisForATest redis = new RedisForATest(builder.build(), port);
        redis.server.start();
        return redis;
    }

    /** Starts one that runs until the JVM ends. */
    static RedisForATest startForAll(String... settings) {
        try {
            RedisForATest redis = start(settings);
            Runtime.getRuntime().addShutdownHook(new Thread(redis::close));
            return redis;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }

    /** {@code host:port} */
    String address() {
        return "127.0.0.1:" + port;
    }

    @Override
    public void close() {
        try {
            server.stop();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
