package io.idempotence.server.redis.internal.jedis;

import io.idempotence.internal.Causes;
import io.idempotence.server.redis.internal.ServerInfo;
import java.util.ArrayList;
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
    private final RedisAddresses addresses;
    private final JedisClientConfig config;
    private final List<Look> looks = new ArrayList<>();

    /** A server's report of itself; unknown after a failure, or if the user may not ask. */
    private record Look(
            HostAndPort place, ServerInfo info, @Nullable RuntimeException failure) {
        private String shown() {
            return RedisAddresses.shown(place);
        }

        /** Why the server could not be asked; empty if it could be, or if its reply was not understood. */
        private String reason() {
            return failure instanceof JedisException ? JedisErrors.reason(failure) : "";
        }
    }

    WrongServer(RedisAddresses addresses, JedisClientConfig config) {
        this.addresses = addresses;
        this.config = config;
    }

    /** What is wrong with a single server or the nodes of a Cluster, and the fix; empty if it cannot be told. */
    Optional<String> forRecords() {
        return first(look -> notForRecords(look, addresses.isCluster()));
    }

    /** What is wrong with Sentinels or the name of their primary, and the fix; empty if it cannot be told. */
    Optional<String> forSentinels(String primaryName) {
        return first(look -> {
            String unwatched = unwatched(look, primaryName);
            return unwatched == null ? noSentinel(look) : unwatched;
        });
    }

    /** The first server that could not be asked for another reason than that of a failure, with the reason; empty if there is none. */
    Optional<String> silent(JedisException failure) {
        String known = JedisErrors.reason(failure);
        return looks.stream()
                .filter(look -> !look.reason().isEmpty() && !look.reason().equals(known))
                .map(look -> look.shown() + ": " + look.reason())
                .findFirst();
    }

    /** The first verdict. A server that lets its client wait ends the search, because each further one might, too. */
    private Optional<String> first(Function<Look, @Nullable String> judge) {
        return addresses.places().stream()
                .map(this::look)
                .peek(looks::add)
                .takeWhile(look -> look.failure() == null || !JedisErrors.hasTimedOut(look.failure()))
                .map(judge)
                .filter(Objects::nonNull)
                .findFirst();
    }

    private @Nullable String notForRecords(Look look, boolean isCluster) {
        ServerInfo info = look.info();
        if (!info.isKnown()) {
            return null;
        }
        if (info.isSentinel()) {
            return look.shown()
                    + " is a Sentinel, which keeps no records; give the name of the primary that it watches, too";
        }
        if (isCluster && !info.isInCluster()) {
            return look.shown()
                    + " is no node of a Cluster, and only a Cluster has several addresses; give one address";
        }
        int database = config.getDatabase();
        if (database == 0 || !isRefused(look.place(), config)) {
            return null;
        }
        return info.isInCluster()
                ? look.shown() + " is a node of a Cluster, which has only database 0; leave the " + database + " out"
                : look.shown() + " has no database " + database
                        + "; give one below the number of 'databases' in its configuration, by default 16";
    }

    private static @Nullable String unwatched(Look look, String primaryName) {
        List<String> watched = look.info().watched();
        return look.info().isSentinel() && !watched.contains(primaryName)
                ? look.shown() + " watches no primary '" + primaryName + "', but " + watched
                        + "; give one of these names"
                : null;
    }

    private static @Nullable String noSentinel(Look look) {
        return look.info().isSentinel() || !look.info().isKnown()
                ? null
                : look.shown()
                        + " is no Sentinel; give the addresses of the Sentinels, or leave out the primary's name";
    }

    private Look look(HostAndPort place) {
        JedisClientConfig anyDatabase =
                DefaultJedisClientConfig.builder().from(config).database(0).build();
        try (Connection connection = new Connection(place, anyDatabase)) {
            // No RoundTripSender: a Sentinel has no ECHO.
            connection.sendCommand(Protocol.Command.INFO);
            return new Look(place, ServerInfo.parse(connection.getOne()), null);
        } catch (RuntimeException e) {
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
