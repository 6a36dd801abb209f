package io.idempotence.examples.payments;

import io.idempotence.examples.payments.DemoStorage.DemoStorageException;
import io.idempotence.examples.payments.consumer.PaymentClients;
import io.idempotence.examples.payments.network.Fault;
import io.idempotence.examples.payments.network.FaultPlan;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * A demo that pays a few hundred orders twice over: with a plain retry, then with the pair, over the same lossy network. Exit code 0 if the
 * pair paid every order exactly once, 1 if it did not, 2 if the options are wrong, 3 if the demo could not run.
 */
@Command(
        name = "payments",
        sortOptions = false,
        description = "Pays orders over a network that loses responses: first with a plain retry, then with the pair.")
public final class PaymentsDemo implements Callable<Integer> {
    private static final int WARM_UP_CALLS = 200;
    private static final int MAX_CALLS = 100_000;

    private final PrintStream out;

    @Spec
    private @Nullable CommandSpec spec;

    @Option(
            names = "--redis",
            paramLabel = "<host:port>",
            description = "Use this Redis instead of an embedded one. Its records expire within 10 minutes.")
    private @Nullable String redis;

    @Option(
            names = "--storage",
            paramLabel = "<redis|memory>",
            defaultValue = "redis",
            description = "redis, or memory: no Redis at all, both providers share the memory of this process."
                    + " Default: ${DEFAULT-VALUE}.")
    private String storage = "redis";

    @Option(
            names = "--calls",
            paramLabel = "<number>",
            defaultValue = "400",
            description = "How many orders to pay, 1 to 100000. Default: ${DEFAULT-VALUE}.")
    private int calls;

    @Option(
            names = "--seed",
            paramLabel = "<number>",
            defaultValue = "1",
            description =
                    "Which requests the network spoils; the same seed spoils the same ones. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    private PaymentsDemo(PrintStream out) {
        this.out = out;
    }

    /**
     * Runs the demo and ends the JVM with its exit code.
     *
     * @param args see {@code --help}
     */
    public static void main(String[] args) {
        int exitCode = run(System.out, new PrintWriter(System.err, true, Charset.defaultCharset()), args);
        System.out.flush();
        System.exit(exitCode);
    }

    static int run(PrintStream out, PrintWriter err, String... args) {
        return new CommandLine(new PaymentsDemo(out))
                .setErr(err)
                .setExecutionExceptionHandler((e, commandLine, parsed) -> {
                    commandLine.getErr().println("the demo could not run: " + e);
                    e.printStackTrace(commandLine.getErr());
                    return 3;
                })
                .execute(args);
    }

    @Override
    public Integer call() throws InterruptedException {
        if (calls < 1 || calls > MAX_CALLS) {
            throw wrong("--calls must be 1 to " + MAX_CALLS + ", got " + calls);
        }
        if (!storage.equals("redis") && !storage.equals("memory")) {
            throw wrong("--storage must be redis or memory, got '" + storage + "'");
        }
        if (storage.equals("memory") && redis != null) {
            throw wrong("--redis and --storage memory exclude each other");
        }
        try (DemoStorage opened = open()) {
            return compare(opened);
        }
    }

    private int compare(DemoStorage opened) throws InterruptedException {
        out.printf("%d orders to pay, %d at a time, seed %d.%n", calls, PaymentRun.CONCURRENCY, seed);
        out.printf(
                "%d providers; with the pair they remember IDs in %s.%n", PaymentRun.PROVIDERS, opened.description());
        out.printf(
                "A call makes up to %d attempts, each waits %d ms for its response.%n",
                PaymentClients.MAX_ATTEMPTS, PaymentClients.READ_TIMEOUT.toMillis());
        out.printf(
                "The network spoils %d of 100 requests: %s.%n%n",
                100 - Fault.NONE.percent(),
                Arrays.stream(Fault.values())
                        .filter(fault -> fault != Fault.NONE)
                        .map(fault -> fault.label() + " " + fault.percent())
                        .collect(Collectors.joining(", ")));
        Result plain = run(Mode.PLAIN_RETRY, opened);
        Result pair = run(Mode.PAIR, opened);
        out.println();
        out.println(Report.table(plain, pair));
        out.println(Report.explanation(plain, pair));
        if (pair.unsettled() > 0 || pair.wrongResponses() > 0) {
            out.printf("never settled: %d, wrong responses: %d%n", pair.unsettled(), pair.wrongResponses());
        }
        out.println(Report.lastLine(pair));
        return pair.isFlawless() ? 0 : 1;
    }

    private Result run(Mode mode, DemoStorage opened) throws InterruptedException {
        // A namespace per run: a Redis that is used again has none of its IDs.
        String namespace =
                "demo-" + Long.toHexString(ThreadLocalRandom.current().nextLong());
        // A cold JVM takes longer than the read timeout. That is not what is to be shown.
        PaymentRun.run(mode, WARM_UP_CALLS, FaultPlan.noFaults(), opened, namespace + "-warm-up", Progress.none());
        try (Progress progress = Progress.show(mode.label(), calls, out)) {
            return PaymentRun.run(mode, calls, FaultPlan.ofSeed(seed), opened, namespace, progress);
        }
    }

    private DemoStorage open() {
        try {
            if (storage.equals("memory")) {
                return DemoStorage.memory();
            }
            return redis == null ? DemoStorage.embeddedRedis() : DemoStorage.redis(redis);
        } catch (DemoStorageException e) {
            throw wrong(redis == null ? e.reason() : "--redis " + redis + ": " + e.reason());
        }
    }

    private ParameterException wrong(String message) {
        return new ParameterException(Objects.requireNonNull(spec).commandLine(), message);
    }
}
