package io.idempotence.benchmarks;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.embedded.RedisServer;
import redis.embedded.core.ExecutableProvider;

/** A real Redis server on the loopback address, in memory only. Ends with the JVM at the latest. */
final class Redis implements AutoCloseable {
    private static final Pattern INFO_LINE = Pattern.compile("(?m)^([a-z_0-9]+):(.*?)\r?$");

    /** 6.2, of a Maven artifact. */
    static final ExecutableProvider VERSION_6 = ExecutableProvider.newJarResourceProvider();

    private final RedisServer server;
    private final int port;

    private Redis(RedisServer server, int port) {
        this.server = server;
        this.port = port;
    }

    static Redis start(ExecutableProvider executable) throws IOException {
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
        RedisServer server = RedisServer.newRedisServer()
                .executableProvider(executable)
                .port(port)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .setting("appendonly no")
                .build();
        server.start();
        return new Redis(server, port);
    }

    int port() {
        return port;
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    /** A connection of its own, which the caller closes. */
    Jedis jedis() {
        return new Jedis(
                new HostAndPort("127.0.0.1", port),
                DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis(600_000)
                        .autoNegotiateProtocol(false)
                        .build());
    }

    /** A client with a pool as large as that of {@code RedisIdempotenceStorage}; the caller closes it. */
    static RedisClient client(HostAndPort address) {
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(64);
        pool.setMaxIdle(64);
        return RedisClient.builder().hostAndPort(address).poolConfig(pool).build();
    }

    /** One field of INFO. */
    String info(String section, String field) {
        try (Jedis jedis = jedis()) {
            Matcher lines = INFO_LINE.matcher(jedis.info(section));
            while (lines.find()) {
                if (lines.group(1).equals(field)) {
                    return lines.group(2);
                }
            }
        }
        throw new IllegalStateException("INFO of Redis has no field " + field + "; use Redis 6.2 or later");
    }

    String version() {
        return info("server", "redis_version");
    }

    /** What this server had of the processors. */
    Usage usage() {
        double seconds =
                Double.parseDouble(info("cpu", "used_cpu_user")) + Double.parseDouble(info("cpu", "used_cpu_sys"));
        return new Usage(0, 0, (long) (seconds * 1e9));
    }

    @Override
    public void close() throws IOException {
        server.stop();
    }
}
