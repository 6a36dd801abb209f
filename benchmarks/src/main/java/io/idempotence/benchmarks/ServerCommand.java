package io.idempotence.benchmarks;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.Idempotence;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import jakarta.servlet.ServletContext;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import javax.sql.DataSource;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The server half under load: a handler bare, behind two raw Redis commands, and behind ours on three storages. */
@Command(
        name = "server",
        sortOptions = false,
        description = "Requests per second and latency of a small handler, bare and protected.")
final class ServerCommand implements Callable<Integer> {
    private static final String BARE = "bare";
    private static final String FLOOR = "floor";
    private static final String REDIS = "redis";
    private static final String MEMORY = "memory";
    private static final String POSTGRESQL = "postgresql";
    private static final Map<String, String> TITLES = Map.of(
            BARE, "bare handler",
            FLOOR, "floor: bare + two raw Redis commands",
            REDIS, "ours on Redis",
            MEMORY, "ours in memory",
            POSTGRESQL, "ours on PostgreSQL");

    private static final int MAX_RECORDS = 10_000_000;

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    @Option(names = "--connections", defaultValue = "16", description = "kept connections (${DEFAULT-VALUE})")
    private int connections;

    @Mixin
    private RoundsOption roundsOption = new RoundsOption();

    @Option(
            names = "--variants",
            split = ",",
            defaultValue = "bare,floor,redis,memory,postgresql",
            description = "which of ${DEFAULT-VALUE}; bare and floor are needed")
    private List<String> variants = List.of();

    @Mixin
    private RedisOption redisOption = new RedisOption();

    @Override
    public Integer call() throws Exception {
        try (Resources resources = new Resources()) {
            Redis redis = resources.add(redisOption.start());
            Map<String, Consumer<ServletContext>> applications = new LinkedHashMap<>();
            for (String name : variants) {
                applications.put(name, application(name, redis, resources));
            }
            PaymentServer server = resources.add(PaymentServer.start(applications));
            List<Variant> loads = variants.stream()
                    .map(name -> {
                        String path = "/" + name + "/payments";
                        ThreadedLoad load = resources.add(
                                new ThreadedLoad(connections, () -> new HttpConnection(server.port(), path)));
                        return new Variant(name, redis.withCpu(load));
                    })
                    .toList();
            report(new Report(System.out), roundsOption.run(loads), redis.version());
        }
        return 0;
    }

    private static Consumer<ServletContext> application(String name, Redis redis, Resources resources)
            throws Exception {
        return switch (name) {
            case BARE -> context -> {};
            case FLOOR -> PaymentServer.behind(new FloorFilter(resources.add(redis.client())));
            case REDIS -> protectedBy(RedisIdempotenceStorage.connect(redis.address()), resources);
            case MEMORY -> protectedBy(IdempotenceStorage.inMemory(MAX_RECORDS, Clock.systemUTC()), resources);
            case POSTGRESQL ->
                protectedBy(
                        JdbcIdempotenceStorage.builder(postgres(resources))
                                .createIfMissing()
                                .build(),
                        resources);
            default -> throw new IllegalArgumentException("there is no variant " + name);
        };
    }

    private static Consumer<ServletContext> protectedBy(IdempotenceStorage storage, Resources resources) {
        Idempotence idempotence = resources.add(Idempotence.over(storage));
        return context -> IdempotenceFilter.install(context, idempotence);
    }

    private void report(Report report, Rounds measured, String redisVersion) {
        report.line("%d connections, %s; Redis %s.", connections, roundsOption, redisVersion);
        report.table(
                "handler",
                "requests/s",
                "p50 µs",
                "p99 µs",
                "added p50 µs",
                "requests/s ÷ floor",
                "added p50 ÷ floor",
                "CPU µs, JVM",
                "CPU µs, Redis");
        for (String name : variants) {
            boolean bare = name.equals(BARE);
            report.row(
                    TITLES.getOrDefault(name, name),
                    measured.median(name, Sample::perSecond),
                    measured.median(name, Sample::p50),
                    measured.median(name, sample -> sample.percentile(99)),
                    bare ? "" : measured.medianOfRounds(addedP50(name)),
                    measured.medianOfRounds(throughput(name)),
                    bare ? "" : measured.medianOfRounds(addedRatio(name)),
                    measured.median(name, Sample::cpu),
                    measured.median(name, Sample::redisCpu));
        }
        report.blank();
        if (variants.contains(REDIS)) {
            report.atLeast("requests/s on Redis ÷ floor", 0.90, measured.medianOfRounds(throughput(REDIS)));
            report.line("  - rounds: %s", measured.range(throughput(REDIS)));
            report.atMost("added p50 on Redis ÷ floor's", 1.15, measured.medianOfRounds(addedRatio(REDIS)));
            report.line("  - rounds: %s", measured.range(addedRatio(REDIS)));
        }
    }

    private static ToDoubleFunction<Rounds.Round> throughput(String name) {
        return round -> round.ratio(name, FLOOR, Sample::perSecond);
    }

    private static ToDoubleFunction<Rounds.Round> addedP50(String name) {
        return round -> round.of(name).p50() - round.of(BARE).p50();
    }

    private static ToDoubleFunction<Rounds.Round> addedRatio(String name) {
        return round -> addedP50(name).applyAsDouble(round) / addedP50(FLOOR).applyAsDouble(round);
    }

    /** As durable as it is by default: every commit waits for the disk. */
    private static DataSource postgres(Resources resources) throws Exception {
        EmbeddedPostgres postgres = resources.add(EmbeddedPostgres.builder()
                .setServerConfig("fsync", "on")
                .setServerConfig("synchronous_commit", "on")
                .start());
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(postgres.getJdbcUrl("postgres", "postgres"));
        config.setMaximumPoolSize(16);
        return resources.add(new HikariDataSource(config));
    }
}
