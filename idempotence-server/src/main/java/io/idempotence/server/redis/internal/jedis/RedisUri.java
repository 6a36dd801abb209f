package io.idempotence.server.redis.internal.jedis;

import java.net.URI;
import java.util.List;
import java.util.Locale;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.SslVerifyMode;
import redis.clients.jedis.util.JedisURIHelper;

/**
 * A parser of {@code redis://[[user]:password@]host[:port][/database]}, or {@code rediss://…} for TLS. Its messages never contain anything
 * that may be a password.
 */
public final class RedisUri {
    private static final int DEFAULT_PORT = 6379;

    private RedisUri() {}

    public static RedisAddresses place(URI uri) {
        String host = checked(uri).getHost();
        if (host.startsWith("[")) {
            host = host.substring(1, host.length() - 1);
        }
        return new RedisAddresses(List.of(new HostAndPort(host, uri.getPort() < 0 ? DEFAULT_PORT : uri.getPort())));
    }

    public static JedisClientConfig clientConfig(URI uri) {
        DefaultJedisClientConfig.Builder config = RedisConnector.withTimeouts();
        String user = JedisURIHelper.getUser(checked(uri));
        if (user != null && !user.isEmpty()) {
            config.user(user);
        }
        String password = JedisURIHelper.getPassword(uri);
        if (password != null) {
            config.password(password);
        }
        if (path(uri).length() > 1) {
            config.database(Integer.parseInt(path(uri).substring(1)));
        }
        if (scheme(uri).equals("rediss")) {
            config.sslOptions(
                    SslOptions.builder().sslVerifyMode(SslVerifyMode.FULL).build());
        }
        return config.build();
    }

    private static URI checked(URI uri) {
        if (!scheme(uri).equals("redis") && !scheme(uri).equals("rediss")) {
            throw new IllegalArgumentException("the Redis URI must begin with redis:// or rediss://");
        }
        if (uri.getHost() == null) {
            throw new IllegalArgumentException(
                    "the Redis URI has no host, or one that no URI can have;"
                            + " write redis://user:password@host:6379/0, with reserved characters of the password percent-encoded");
        }
        if (uri.getUserInfo() != null && !uri.getUserInfo().contains(":")) {
            throw new IllegalArgumentException("the Redis URI has a user without a password; write"
                    + " redis://user:password@host, or redis://:password@host for the default user");
        }
        if (uri.getPort() == 0 || uri.getPort() > 65_535) {
            throw new IllegalArgumentException("the Redis URI has port " + uri.getPort() + "; give 1 to 65535");
        }
        if (!path(uri).matches("/?|/[0-9]{1,9}")) {
            throw new IllegalArgumentException("the path of the Redis URI must be the number of a database, as in /0");
        }
        if (uri.getRawQuery() != null || uri.getRawFragment() != null) {
            throw new IllegalArgumentException("the Redis URI has " + (uri.getRawQuery() != null ? "a '?'" : "a '#'")
                    + " with something behind it, which nothing here reads; set timeouts with"
                    + " RedisIdempotenceStorage.builder(uri).timeouts(...), or percent-encode it in the password");
        }
        return uri;
    }

    private static String scheme(URI uri) {
        return uri.getScheme() == null ? "" : uri.getScheme().toLowerCase(Locale.ROOT);
    }

    private static String path(URI uri) {
        return uri.getPath() == null ? "" : uri.getPath();
    }
}
