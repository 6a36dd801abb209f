package io.idempotence.server.redis;

import io.idempotence.server.storage.StorageUnavailableException;
import java.net.URI;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.SslVerifyMode;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.util.JedisURIHelper;
import redis.clients.jedis.util.Pool;

/** Opens the clients that a {@link RedisIdempotenceStorage} owns, and closes them again when the first look fails. */
final class RedisConnector {
    private static final Logger LOG = LoggerFactory.getLogger(RedisIdempotenceStorage.class);

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);
    private static final Duration ANSWER_TIMEOUT = Duration.ofSeconds(2);
    private static final Duration POOL_WAIT = Duration.ofSeconds(2);
    private static final int MAX_CONNECTIONS = 64;
    private static final int CLUSTER_ATTEMPTS = 3;
    private static final Duration CLUSTER_TOTAL = Duration.ofSeconds(4);
    private static final int DEFAULT_PORT = 6379;
    private static final Pattern VERSION = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})\\..*");

    private RedisConnector() {}

    static ConnectionPoolConfig defaultPoolConfig() {
        ConnectionPoolConfig config = new ConnectionPoolConfig();
        config.setMaxTotal(MAX_CONNECTIONS);
        config.setMaxIdle(MAX_CONNECTIONS);
        config.setMaxWait(POOL_WAIT);
        return config;
    }

    static JedisClientConfig defaultClientConfig() {
        return withTimeouts().build();
    }

    private static DefaultJedisClientConfig.Builder withTimeouts() {
        return DefaultJedisClientConfig.builder()
                .connectionTimeoutMillis((int) CONNECT_TIMEOUT.toMillis())
                .socketTimeoutMillis((int) ANSWER_TIMEOUT.toMillis());
    }

    static RedisIdempotenceStorage connect(URI uri, ConnectionPoolConfig poolConfig) {
        String scheme = uri.getScheme() == null ? "" : uri.getScheme().toLowerCase(Locale.ROOT);
        if (!scheme.equals("redis") && !scheme.equals("rediss")) {
            throw new IllegalArgumentException("the Redis URI must begin with redis:// or rediss://");
        }
        String host = uri.getHost();
        if (host == null) {
            throw new IllegalArgumentException(
                    "the Redis URI has no host, or one that no URI can have;"
                            + " write redis://user:password@host:6379/0, with reserved characters of the password percent-encoded");
        }
        if (host.startsWith("[")) {
            host = host.substring(1, host.length() - 1);
        }
        if (uri.getPort() == 0 || uri.getPort() > 65_535) {
            throw new IllegalArgumentException("the Redis URI has port " + uri.getPort() + "; give 1 to 65535");
        }
        String path = uri.getPath() == null ? "" : uri.getPath();
        if (!path.matches("/?|/[0-9]{1,9}")) {
            throw new IllegalArgumentException("the path of the Redis URI must be the number of a database, as in /0");
        }
        DefaultJedisClientConfig.Builder config = withTimeouts();
        String user = JedisURIHelper.getUser(uri);
        if (user != null && !user.isEmpty()) {
            config.user(user);
        }
        String password = JedisURIHelper.getPassword(uri);
        if (password != null) {
            config.password(password);
        }
        if (path.length() > 1) {
            config.database(Integer.parseInt(path.substring(1)));
        }
        if (scheme.equals("rediss")) {
            config.sslOptions(
                    SslOptions.builder().sslVerifyMode(SslVerifyMode.FULL).build());
        }
        HostAndPort place = new HostAndPort(host, uri.getPort() < 0 ? DEFAULT_PORT : uri.getPort());
        return connect(new RedisAddresses(List.of(place)), poolConfig, config.build());
    }

    static RedisIdempotenceStorage connect(
            RedisAddresses addresses, ConnectionPoolConfig poolConfig, JedisClientConfig clientConfig) {
        if (clientConfig.getSocketTimeoutMillis() <= 0 || clientConfig.getConnectionTimeoutMillis() <= 0) {
            throw new IllegalArgumentException("a Redis timeout of 0 waits for ever; give connectionTimeoutMillis and"
                    + " socketTimeoutMillis of at least 1");
        }
        GenericObjectPoolConfig<Connection> bounded = poolConfig.clone();
        if (bounded.getMaxWaitDuration().isNegative()) {
            bounded.setMaxWait(POOL_WAIT);
        }
        return addresses.isCluster()
                ? connectCluster(addresses, bounded, clientConfig)
                : connectSingle(addresses, bounded, clientConfig);
    }

    private static RedisIdempotenceStorage connectSingle(
            RedisAddresses addresses, GenericObjectPoolConfig<Connection> poolConfig, JedisClientConfig clientConfig) {
        String name = "Redis at " + addresses;
        HostAndPort place = addresses.places().get(0);
        RedisClient client = opened(
                name,
                () -> RedisClient.builder()
                        .hostAndPort(place)
                        .clientConfig(clientConfig)
                        .poolConfig(poolConfig)
                        .build());
        boolean keep = false;
        try {
            boolean inCluster;
            try {
                RedisIdempotenceStorage.probe(client);
                Map<String, String> info = info(client);
                inCluster = "1".equals(info.get("cluster_enabled"));
                if (!inCluster) {
                    warnOfRisks(name, info);
                }
            } catch (JedisMovedDataException e) {
                inCluster = true;
            }
            if (!inCluster) {
                keep = true;
                return RedisIdempotenceStorage.owning(client, name, client.getPool()::clear);
            }
        } catch (RuntimeException e) {
            throw doesNotAnswer(name, e);
        } finally {
            if (!keep) {
                client.close();
            }
        }
        return connectCluster(addresses, poolConfig, clientConfig);
    }

    private static RedisIdempotenceStorage connectCluster(
            RedisAddresses addresses, GenericObjectPoolConfig<Connection> poolConfig, JedisClientConfig clientConfig) {
        String name = "Redis Cluster at " + addresses;
        RedisClusterClient client = opened(
                name,
                () -> RedisClusterClient.builder()
                        .nodes(new LinkedHashSet<>(addresses.places()))
                        .clientConfig(clientConfig)
                        .poolConfig(poolConfig)
                        .maxAttempts(CLUSTER_ATTEMPTS)
                        .maxTotalRetriesDuration(CLUSTER_TOTAL)
                        .build());
        try {
            RedisIdempotenceStorage.probe(client);
        } catch (RuntimeException e) {
            client.close();
            throw doesNotAnswer(name, e);
        }
        return RedisIdempotenceStorage.owning(
                client, name, () -> client.getClusterNodes().values().forEach(Pool::clear));
    }

    private static <T> T opened(String name, Supplier<T> opening) {
        try {
            return opening.get();
        } catch (JedisException e) {
            throw doesNotAnswer(name, e);
        }
    }

    private static StorageUnavailableException doesNotAnswer(String name, RuntimeException e) {
        return new StorageUnavailableException(
                name + " cannot be used: " + RedisIdempotenceStorage.reason(e)
                        + "; check that it runs, that the address is right, and the credentials",
                e);
    }

    /** Best effort: a Redis user of its own may lack the right to ask. */
    private static Map<String, String> info(UnifiedJedis client) {
        Map<String, String> info = new HashMap<>();
        try {
            for (String line : client.info().split("\r?\n", -1)) {
                int colon = line.indexOf(':');
                if (colon > 0) {
                    info.put(line.substring(0, colon), line.substring(colon + 1));
                }
            }
        } catch (JedisException e) {
            LOG.debug("INFO was refused, so nothing is known about how this Redis is set up", e);
        }
        return info;
    }

    private static void warnOfRisks(String name, Map<String, String> info) {
        String policy = info.getOrDefault("maxmemory_policy", "noeviction");
        if (!policy.equals("noeviction") && !"0".equals(info.get("maxmemory"))) {
            LOG.warn(
                    "{} has maxmemory-policy {}: it may evict records, and what they protect then runs again."
                            + " Set noeviction",
                    name,
                    policy);
        }
        if ("slave".equals(info.get("role"))) {
            LOG.warn("{} is a replica: every claim will fail. Connect to the primary", name);
        }
        if ("0".equals(info.get("aof_enabled"))) {
            LOG.info("{} keeps no append-only file: a restart can forget claims. Consider appendonly yes", name);
        }
        Matcher version = VERSION.matcher(info.getOrDefault("redis_version", ""));
        if (version.matches()) {
            int major = Integer.parseInt(version.group(1));
            if (major < 6 || (major == 6 && Integer.parseInt(version.group(2)) < 2)) {
                LOG.warn("{} is older than Redis 6.2, which is not tested", name);
            }
        }
    }
}
