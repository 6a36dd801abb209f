package io.idempotence.benchmarks;

import feign.Feign;
import feign.Retryer;
import feign.okhttp.OkHttpClient;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import okhttp3.ConnectionPool;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The client half over a real connection: Feign + OkHttp, plain and with ours, to a bare handler on the loopback address. */
@Command(name = "client", sortOptions = false, description = "Calls per second of Feign + OkHttp, plain and with ours.")
final class ClientCommand implements Callable<Integer> {
    private static final String PLAIN = "plain Feign + OkHttp";
    private static final String WITH_ID = "plain, the caller makes an ID";
    private static final String OURS = "ours";

    @Option(names = "--threads", defaultValue = "16", description = "callers at once (${DEFAULT-VALUE})")
    private int threads;

    @Mixin
    private RoundsOption roundsOption = new RoundsOption();

    @Mixin
    private ResultsOption results = new ResultsOption();

    @Override
    public Integer call() throws Exception {
        try (PaymentServer server = PaymentServer.start(Map.of("bare", context -> {}))) {
            String url = "http://127.0.0.1:" + server.port() + "/bare";
            Payments plain = builder().target(Payments.class, url);
            Payments ours = IdempotentFeign.install(
                            builder(), IdempotenceClientConfig.builder().build())
                    .target(Payments.class, url);
            IdempotenceIdGenerator ids = IdempotenceIdGenerator.uuid();
            List<Variant> variants = List.of(
                    variant(PLAIN, () -> plain.pay(HttpConnection.BODY)),
                    variant(WITH_ID, () -> plain.pay(ids.generateId().value(), HttpConnection.BODY)),
                    variant(OURS, () -> ours.pay(HttpConnection.BODY)));
            report(roundsOption.run(variants), variants);
        }
        return 0;
    }

    private void report(Rounds measured, List<Variant> variants) throws IOException {
        Table table =
                new Table("<client", "calls/s", "÷ plain", "÷ with an ID", "p50 µs", "p99 µs", "CPU µs, both ends");
        Plot plot = new Plot(
                "client",
                "Calls by " + threads + " threads",
                "client",
                variants.stream().map(Variant::name).toList(),
                "calls/s ÷ plain Feign + OkHttp");
        for (Variant variant : variants) {
            String name = variant.name();
            table.row(
                    name,
                    measured.median(name, Sample::perSecond),
                    measured.medianOfRounds(ratio(name, PLAIN)),
                    measured.medianOfRounds(ratio(name, WITH_ID)),
                    measured.median(name, Sample::p50),
                    measured.percentile(name, 99),
                    measured.median(name, Sample::cpu));
        }
        plot.bars(
                "calls/s ÷ plain",
                variants.stream()
                        .mapToDouble(variant -> measured.medianOfRounds(ratio(variant.name(), PLAIN)))
                        .toArray());
        results.publish("client", threads + " threads; " + roundsOption + ".", table, plot);
        Targets targets = new Targets();
        targets.atLeast("calls/s ÷ plain", 0.97, measured, ratio(OURS, PLAIN));
        targets.publish("client-targets", results);
    }

    private static ToDoubleFunction<Rounds.Round> ratio(String name, String other) {
        return Rounds.ratio(name, other, Sample::perSecond);
    }

    private Variant variant(String name, Runnable call) {
        return new Variant(
                name,
                new ThreadedLoad(threads, () -> () -> {
                            call.run();
                            return true;
                        })
                        .measuredBy(Usage::ofThisJvm));
    }

    private Feign.Builder builder() {
        okhttp3.OkHttpClient http = new okhttp3.OkHttpClient.Builder()
                .connectionPool(new ConnectionPool(threads, 5, TimeUnit.MINUTES))
                .build();
        return Feign.builder().client(new OkHttpClient(http)).retryer(Retryer.NEVER_RETRY);
    }
}
