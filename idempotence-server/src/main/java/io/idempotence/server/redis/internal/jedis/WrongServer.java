package io.idempotence.server.redis.internal.jedis;

import io.idempotence.internal.Causes;
import io.idempotence.server.redis.internal.ServerInfo;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * The reason why settings fail that are for another kind of server than the one at an address. Each server is asked for its kind, because
 * error replies have no code for this, and the driver drops some of them.
 */
final class WrongServer {
    private final List<Look> looks;
    private final JedisClientConfig config;

    /** What a server tells of itself; unknown after a failure, or if the user may not ask. */
    private record Look(
            HostAndPort place, ServerInfo info, @Nullable JedisException failure) {}

    private WrongServer(RedisAddresses addresses, JedisClientConfig config) {
        this.config = config;
        this.looks = addresses.places().stream().map(this::look).toList();
    }

    /** What is wrong with a single server or the nodes of a Cluster, and the fix; empty if it cannot be told. */
    static Optional<String> forRecords(RedisAddresses addresses, JedisClientConfig config) {
        WrongServer servers = new WrongServer(addresses, config);
        return servers.first(look -> servers.notForRecords(look, addresses.isCluster()));
    }

    /** What is wrong with Sentinels or the name of their primary, and the fix; empty if it cannot be told. */
    static Optional<String> forSentinels(RedisAddresses addresses, JedisClientConfig config, String primaryName) {
        WrongServer servers = new WrongServer(addresses, config);
        return servers.first(look -> unwatched(look, primaryName))
                .or(() -> servers.first(WrongServer::noSentinel))
                .or(() -> servers.first(WrongServer::silent));
    }

    private @Nullable String notForRecords(Look look, boolean isCluster) {
        ServerInfo info = look.info();
        if (!info.isKnown()) {
            return null;
        }
        if (info.isSentinel()) {
            return look.place()
                    + " is a Sentinel, which keeps no records; give the name of the primary that it watches, too";
        }
        if (isCluster && !info.isInCluster()) {
            return look.place()
                    + " is no node of a Cluster, and only a Cluster has several addresses; give one address";
        }
        int database = config.getDatabase();
        if (database == 0 || !isRefused(look.place(), config)) {
            return null;
        }
        return info.isInCluster()
                ? look.place() + " is a node of a Cluster, which has only database 0; leave the " + database + " out"
                : look.place() + " has no database " + database
                        + "; give one below the number of 'databases' in its configuration, by default 16";
    }

    private static @Nullable String unwatched(Look look, String primaryName) {
        List<String> watched = look.info().watched();
        return look.info().isSentinel() && !watched.contains(primaryName)
                ? look.place() + " watches no primary '" + primaryName + "', but " + watched
                        + "; give one of these names"
                : null;
    }

    private static @Nullable String noSentinel(Look look) {
        return look.info().isSentinel() || !look.info().isKnown()
                ? null
                : look.place()
                        + " is no Sentinel; give the addresses of the Sentinels, or leave out the primary's name";
    }

    private static @Nullable String silent(Look look) {
        return look.failure() == null ? null : look.place() + ": " + JedisErrors.reason(look.failure());
    }

    private Optional<String> first(Function<Look, @Nullable String> judge) {
        return looks.stream().map(judge).filter(Objects::nonNull).findFirst();
    }

    private Look look(HostAndPort place) {
        JedisClientConfig anyDatabase =
                DefaultJedisClientConfig.builder().from(config).database(0).build();
        try (Connection connection = new Connection(place, anyDatabase)) {
            // No CallPipeline: a Sentinel has no ECHO.
            connection.sendCommand(Protocol.Command.INFO);
            return new Look(place, ServerInfo.parse(connection.getOne()), null);
        } catch (JedisException e) {
            return new Look(place, ServerInfo.UNKNOWN, e);
        }
    }

    private static boolean isRefused(HostAndPort place, JedisClientConfig config) {
        try {
            new Connection(place, config).close();
            return false;
        } catch (JedisException e) {
            return Causes.has(e, JedisDataException.class);
        }
    }
}
