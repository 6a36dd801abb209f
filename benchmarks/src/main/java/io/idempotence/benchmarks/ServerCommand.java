package io.idempotence.benchmarks;

import io.idempotence.benchmarks.ServerJvm.Application;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;

/** The server half under load: the same handler bare, behind raw commands, and behind ours. */
@Command(
        name = "server",
        sortOptions = false,
        description =
                "Requests per second, latency, processor time and allocation of a small handler, bare and protected.")
final class ServerCommand implements Callable<Integer> {
    private static final int WARM_UP_CONNECTIONS = 16;
    private static final int PINGS = 1_000;

    @Option(
            names = "--connections",
            split = ",",
            defaultValue = "1,16,64,256",
            description = "kept connections, one measurement for each (${DEFAULT-VALUE})")
    private List<Integer> connections = List.of();

    @Option(
            names = "--networks",
            split = ",",
            defaultValue = "0,200,1000",
            description =
                    "round-trip times in µs of slower networks to Redis, besides none (${DEFAULT-VALUE}); - for none")
    private List<String> networks = List.of();

    @Option(
            names = "--variants",
            split = ",",
            description = "default: all of ${COMPLETION-CANDIDATES}; BARE and FLOOR are always measured")
    private Set<ServerVariant> variants = EnumSet.allOf(ServerVariant.class);

    @Option(names = "--jvm-option", description = "for the JVM that serves; may be repeated")
    private List<String> jvmOptions = new ArrayList<>();

    @Mixin
    private RoundsOption roundsOption = new RoundsOption();

    @Mixin
    private RedisOption redisOption = new RedisOption();

    @Mixin
    private ResultsOption results = new ResultsOption();

    @Override
    public Integer call() throws Exception {
        results.publish("machine", Machine.describe());
        variants.addAll(EnumSet.of(ServerVariant.BARE, ServerVariant.FLOOR));
        try (Resources resources = new Resources()) {
            Redis redis = resources.add(redisOption.start());
            Map<String, SlowNetwork> slow = new LinkedHashMap<>();
            for (String micros : networks) {
                if (!micros.equals("-")) {
                    Duration delay = Duration.ofNanos(Long.parseLong(micros) * 1_000);
                    slow.put(micros, resources.add(SlowNetwork.before(redis.port(), delay)));
                }
            }
            StringJoiner pings = new StringJoiner(", ", "A single PING takes ", ".");
            pings.add("%.0f µs directly".formatted(pingMicros(redis.port())));
            for (Map.Entry<String, SlowNetwork> network : slow.entrySet()) {
                pings.add("%,.0f µs over the network of %,d µs"
                        .formatted(pingMicros(network.getValue().port()), Long.parseLong(network.getKey())));
            }
            EmbeddedPostgres database =
                    variants.stream().anyMatch(ServerVariant::needsDatabase) ? resources.add(startPostgreSql()) : null;
            List<Application> applications = applications(redis, slow);
            ServerJvm server = resources.add(ServerJvm.start(
                    jvmOptions, database == null ? "" : database.getJdbcUrl("postgres", "postgres"), applications));
            Map<Integer, Rounds> measured = measure(applications, server, redis, database);
            String method = roundsOption + "; Redis " + redis.version() + ".";
            new ServerReport(measured, variants, slow.keySet(), pings + held(slow), method).publish(results);
        }
        return 0;
    }

    /** What the networks really added under load. */
    private static String held(Map<String, SlowNetwork> slow) {
        return slow.entrySet().stream()
                .filter(network -> network.getValue().heldMicros(50) > 0)
                .map(network -> "%nUnder load, that of %s µs held requests for %.0f µs at the median, %.0f µs at p99."
                        .formatted(
                                network.getKey(),
                                network.getValue().heldMicros(50),
                                network.getValue().heldMicros(99)))
                .collect(Collectors.joining());
    }

    private List<Application> applications(Redis redis, Map<String, SlowNetwork> slow) {
        List<Application> applications = new ArrayList<>();
        for (ServerVariant variant : ServerVariant.values()) {
            if (variants.contains(variant)) {
                applications.add(new Application(path(variant, ""), variant, address(redis.port())));
                if (variant.overNetworks) {
                    slow.forEach((micros, network) ->
                            applications.add(new Application(path(variant, micros), variant, address(network.port()))));
                }
            }
        }
        return applications;
    }

    /** The name of a variant in a round, and its path. */
    static String path(ServerVariant variant, String network) {
        String name = variant.name().toLowerCase(Locale.ROOT);
        return network.isEmpty() ? name : name + "-" + network + "us";
    }

    private static HostAndPort address(int port) {
        return new HostAndPort("127.0.0.1", port);
    }

    private Map<Integer, Rounds> measure(
            List<Application> applications, ServerJvm server, Redis redis, @Nullable EmbeddedPostgres database)
            throws Exception {
        int samples = applications.size() * (roundsOption.warmUps() + connections.size() * (1 + roundsOption.rounds()));
        Countdown countdown =
                new Countdown(System.err, samples, roundsOption.each().multipliedBy(samples));
        Map<Integer, Rounds> measured = new TreeMap<>();
        try (Resources callers = new Resources()) {
            List<Variant> warmUp = loads(WARM_UP_CONNECTIONS, applications, server, redis, callers);
            Rounds.run(warmUp, 0, roundsOption.warmUps(), roundsOption.each(), countdown);
        }
        for (int count : connections) {
            empty(redis, database);
            try (Resources callers = new Resources()) {
                List<Variant> loads = loads(count, applications, server, redis, callers);
                System.err.printf("%d connections%n", count);
                measured.put(count, Rounds.run(loads, 1, roundsOption.rounds(), roundsOption.each(), countdown));
            }
        }
        return measured;
    }

    private static List<Variant> loads(
            int count, List<Application> applications, ServerJvm server, Redis redis, Resources callers) {
        return applications.stream()
                .map(application -> {
                    boolean newIds = application.variant().comparison != ServerVariant.Comparison.REPLAYS;
                    String path = "/" + application.path() + "/payments";
                    ThreadedLoad load =
                            callers.add(new ThreadedLoad(count, () -> new HttpConnection(server.port(), path, newIds)));
                    return new Variant(
                            application.path(),
                            load.measuredBy(() -> server.usage().plus(redis.usage())));
                })
                .toList();
    }

    /** Every measurement begins without records. */
    private static void empty(Redis redis, @Nullable EmbeddedPostgres database) throws SQLException {
        try (Jedis jedis = redis.jedis()) {
            jedis.flushAll();
        }
        if (database != null) {
            try (Connection connection = database.getPostgresDatabase().getConnection();
                    Statement statement = connection.createStatement()) {
                for (String table : List.of("idempotence_record", "floor")) {
                    statement.execute("DO $$ BEGIN IF to_regclass('" + table + "') IS NOT NULL THEN TRUNCATE " + table
                            + "; END IF; END $$");
                }
            }
        }
    }

    /** As durable as it is by default: every commit waits for the disk. */
    private static EmbeddedPostgres startPostgreSql() throws IOException {
        return EmbeddedPostgres.builder()
                .setServerConfig("fsync", "on")
                .setServerConfig("synchronous_commit", "on")
                .start();
    }

    /** The median round-trip time of one connection while nothing else happens. */
    private static double pingMicros(int port) {
        double[] micros = new double[PINGS];
        try (Jedis jedis = new Jedis(address(port))) {
            for (int i = -PINGS / 2; i < PINGS; i++) {
                long before = System.nanoTime();
                jedis.ping();
                if (i >= 0) {
                    micros[i] = (System.nanoTime() - before) / 1e3;
                }
            }
        }
        Arrays.sort(micros);
        return micros[PINGS / 2];
    }
}
