package io.idempotence.it.chaos;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.text;
import static org.awaitility.Awaitility.await;

import feign.Client;
import feign.hc5.ApacheHttp5Client;
import feign.http2client.Http2Client;
import io.idempotence.IdempotenceId;
import io.idempotence.it.chaos.ChaosPlan.Scene;
import io.idempotence.it.container.Http;
import io.idempotence.it.fault.ProviderProcess;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.redis.DelayProxy;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import okhttp3.OkHttpClient;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;

/**
 * A run with two providers on one Redis, clients that call them, and faults in all of them. The history is what callers were told. The
 * ledger is what was executed.
 */
final class ChaosRun implements AutoCloseable {
    private static final Duration SLACK = Duration.ofSeconds(4);
    /** How long after an incident everything works again, also on a machine that pauses for two seconds. */
    private static final Duration RECOVERY = Duration.ofSeconds(4);

    private static final Duration BETWEEN_CALLS = Duration.ofMillis(25);
    private static final Duration SETTLED_WITHIN = Duration.ofSeconds(60);
    private static final Set<State> FINAL = EnumSet.of(State.COMPLETED, State.RELEASED);

    private final long seed;
    private final Scene scene;
    private final ChaosPlan plan;
    private final HistoryChecker checker;
    private final Path ledger = Files.createTempFile("chaos", ".ledger");
    private final EmbeddedRedis redis = EmbeddedRedis.startPersistent();
    private final List<DelayProxy> links = List.of(new DelayProxy(redis.port()), new DelayProxy(redis.port()));
    private final List<ProviderProcess> providers = new ArrayList<>();
    private final ChaosNetwork network;
    private final CloseableHttpClient hc5 =
            HttpClientBuilder.create().disableAutomaticRetries().build();
    private final AtomicInteger callNumber = new AtomicInteger();
    private final Collection<Call> calls = new ConcurrentLinkedQueue<>();
    private final List<Incident> incidents = new ArrayList<>();
    private volatile boolean calling = true;

    ChaosRun(long seed, Scene scene) throws IOException {
        this.seed = seed;
        this.scene = scene;
        this.plan = new ChaosPlan(seed, scene);
        this.checker = new HistoryChecker(scene.deadline().plus(SLACK), RECOVERY);
        providers.add(startProvider(0));
        providers.add(startProvider(1));
        List<Supplier<URI>> addresses =
                List.of(() -> provider(0).uri("/"), () -> provider(1).uri("/"));
        this.network = new ChaosNetwork(seed, addresses);
    }

    /** The results of a run. */
    record Report(
            long seed,
            List<Call> calls,
            List<HistoryChecker.Violation> violations,
            List<Incident> incidents,
            String faults) {
        long count(Class<? extends Ending> ending) {
            return calls.stream()
                    .filter(call -> ending.isInstance(call.ending()))
                    .count();
        }

        /** By which kinds of clients operations were executed. */
        Set<String> clientsWithAResponse() {
            return calls.stream()
                    .filter(call -> call.ending() instanceof Ending.Responded)
                    .map(call -> call.name().substring(0, call.name().lastIndexOf('-')))
                    .collect(Collectors.toSet());
        }

        @Override
        public String toString() {
            long start = calls.stream().mapToLong(Call::begunAt).min().orElse(0);
            String log = incidents.stream()
                    .map(incident -> "  " + (incident.from() - start) / 1_000_000 + " to "
                            + (incident.to() - start) / 1_000_000 + " ms: " + incident)
                    .collect(Collectors.joining("\n"));
            String bad = violations.stream()
                    .limit(30)
                    .map(violation -> "  " + violation + " "
                            + calls.stream()
                                    .filter(call -> call.name().equals(violation.call()))
                                    .map(call -> (call.begunAt() - start) / 1_000_000 + " to "
                                            + (call.endedAt() - start) / 1_000_000 + " ms: " + call)
                                    .findFirst()
                                    .orElse(""))
                    .collect(Collectors.joining("\n"));
            return "chaos.seed=" + seed + ": " + calls.size() + " calls, responded " + count(Ending.Responded.class)
                    + ", rejected " + count(Ending.Rejected.class) + ", failed " + count(Ending.Failed.class)
                    + ", unknown "
                    + count(Ending.Unknown.class) + ", result unavailable " + count(Ending.ResultUnavailable.class)
                    + "\nfaults of the network: " + faults + "\nincidents:\n" + log + "\nviolations: "
                    + violations.size() + "\n" + bad;
        }
    }

    /** Runs, repairs everything, settles what is unknown, and compares. */
    Report run(Duration time) throws Exception {
        ExecutorService callers = startCallers();
        try {
            long end = System.nanoTime() + time.toNanos();
            while (System.nanoTime() < end) {
                ChaosPlan.pause(plan.quiet());
                if (scene.hasIncidents()) {
                    happen();
                }
            }
            calling = false;
            callers.shutdown();
            if (!callers.awaitTermination(
                    scene.deadline().plus(SLACK).plusSeconds(20).toMillis(), TimeUnit.MILLISECONDS)) {
                throw new AssertionError("chaos.seed=" + seed + ": a call does not end");
            }
        } finally {
            calling = false;
            callers.shutdownNow();
        }
        List<Call> history = calls.stream().map(this::withIdsOfRequests).toList();
        List<HistoryChecker.Violation> violations = new ArrayList<>();
        List<Call> settled = scene.isProtected() ? settle(history, violations) : history;
        violations.addAll(checker.check(settled, effects(), incidents));
        return new Report(seed, settled, violations, incidents, network.counts().toString());
    }

    private Call withIdsOfRequests(Call call) {
        Set<String> ids = new LinkedHashSet<>(call.ids());
        ids.addAll(network.ids(call.name()));
        return call.withIds(List.copyOf(ids));
    }

    private ExecutorService startCallers() {
        String url = network.url();
        Duration deadline = scene.deadline();
        List<ChaosClient> clients = List.of(
                ChaosClient.feign("feign-default", new Client.Default(null, null), url, deadline),
                ChaosClient.feign("feign-default", new Client.Default(null, null), url, deadline),
                ChaosClient.feign("feign-okhttp", new feign.okhttp.OkHttpClient(new OkHttpClient()), url, deadline),
                ChaosClient.feign("feign-hc5", new ApacheHttp5Client(hc5), url, deadline),
                ChaosClient.feign("feign-java11", new Http2Client(), url, deadline),
                ChaosClient.okHttp(url, deadline),
                ChaosClient.okHttp(url, deadline));
        ExecutorService callers = Executors.newFixedThreadPool(clients.size());
        for (ChaosClient client : clients) {
            callers.execute(() -> {
                while (calling) {
                    calls.add(client.call(plan.work(client.name() + '-' + callNumber.incrementAndGet())));
                    ChaosPlan.pause(BETWEEN_CALLS);
                }
            });
        }
        return callers;
    }

    // ---- what happens

    private void happen() throws IOException, InterruptedException {
        ChaosPlan.Step step = plan.step();
        int which = plan.provider();
        long from = System.nanoTime();
        switch (step) {
            case KILL_PROVIDER -> {
                provider(which).kill();
                replace(which);
            }
            case PAUSE_PROVIDER -> {
                provider(which).pause();
                ChaosPlan.pause(plan.pastTheLease());
                provider(which).resume();
            }
            case KILL_STORAGE -> {
                redis.kill();
                ChaosPlan.pause(plan.outage());
                redis.restart();
            }
            case PAUSE_STORAGE -> {
                redis.pause();
                ChaosPlan.pause(plan.outage());
                redis.resume();
            }
            case CUT_STORAGE -> {
                links.get(which).cut();
                ChaosPlan.pause(plan.outage());
                links.get(which).repair();
            }
            case SILENCE_STORAGE -> {
                links.get(which).silence();
                ChaosPlan.pause(plan.pastAClaim());
                links.get(which).repair();
            }
            case KILL_PROVIDER_DURING_AN_OUTAGE -> {
                redis.kill();
                ChaosPlan.pause(plan.outage());
                provider(which).kill();
                redis.restart();
                replace(which);
            }
        }
        incidents.add(new Incident(step, which, from, System.nanoTime()));
    }

    private ProviderProcess provider(int which) {
        synchronized (providers) {
            return providers.get(which);
        }
    }

    private void replace(int which) throws IOException, InterruptedException {
        provider(which).close();
        ProviderProcess started = startProvider(which);
        synchronized (providers) {
            providers.set(which, started);
        }
    }

    private ProviderProcess startProvider(int which) throws IOException {
        return ProviderProcess.start(
                List.of("-Xmx128m"),
                ChaosProvider.class,
                links.get(which).address(),
                ledger.toString(),
                Boolean.toString(scene.isProtected()),
                scene.lease().toString());
    }

    // ---- afterwards

    private List<Effect> effects() {
        try {
            return Files.readAllLines(ledger).stream().map(Effect::of).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Makes each call again under its ID, but those that were told that nothing happened. */
    private List<Call> settle(List<Call> history, List<HistoryChecker.Violation> violations) {
        try (IdempotenceStorage storage = redis.connect()) {
            IdempotenceAdmin admin = IdempotenceAdmin.of(storage, "default");
            await("every execution ends")
                    .atMost(SETTLED_WITHIN)
                    .until(() -> admin.list().noneMatch(record -> record.state() == State.IN_PROGRESS));
            Map<StorageKey, Call> calls = new HashMap<>();
            history.forEach(call ->
                    call.ids().forEach(id -> calls.put(admin.requestKey(IdempotenceId.of(id), ""), call)));
            violations.addAll(lost(admin, calls));
            resolve(admin, calls);
            List<Call> settled = history.parallelStream()
                    .map(call -> call.ending() instanceof Ending.Failed ? call : call.settledAs(callAgain(call)))
                    .toList();
            await("every record is final")
                    .atMost(SETTLED_WITHIN)
                    .until(() -> admin.list().allMatch(record -> FINAL.contains(record.state())));
            return settled;
        }
    }

    /** Records without an end which no provider was kept from writing. What is still on its way gets the time to arrive. */
    private List<HistoryChecker.Violation> lost(IdempotenceAdmin admin, Map<StorageKey, Call> calls) {
        Map<String, List<Forwarded>> requests =
                network.forwarded().stream().collect(Collectors.groupingBy(Forwarded::call));
        long end = System.nanoTime() + RECOVERY.toNanos();
        while (true) {
            List<HistoryChecker.Violation> lost = admin.listUncertain(Duration.ZERO)
                    .filter(record -> !checker.mayBeUncertain(
                            requests.getOrDefault(calls.get(record.key()).name(), List.of()), incidents))
                    .map(record -> new HistoryChecker.Violation(
                            HistoryChecker.Kind.STUCK,
                            calls.get(record.key()).name(),
                            "its record is " + record.state() + ", and no provider was stopped"))
                    .toList();
            if (lost.isEmpty() || System.nanoTime() > end) {
                return lost;
            }
            ChaosPlan.pause(BETWEEN_CALLS);
        }
    }

    /** What the operator does: looks into the business data, and says so. */
    private void resolve(IdempotenceAdmin admin, Map<StorageKey, Call> calls) {
        Set<String> effective = effects().stream().map(Effect::call).collect(Collectors.toSet());
        for (IdempotenceRecord record : admin.listUncertain(Duration.ZERO).toList()) {
            boolean applied = effective.contains(calls.get(record.key()).name());
            admin.resolve(record, applied ? Resolution.APPLIED : Resolution.NOT_APPLIED);
        }
    }

    private Ending callAgain(Call call) {
        String body = plan.work(call.name()).body();
        URI uri = provider(0).uri(ChaosProvider.PATH);
        for (long end = System.nanoTime() + SETTLED_WITHIN.toNanos(); ; ) {
            HttpResponse<byte[]> response =
                    Http.post(uri, call.ids().get(0), body, "Content-Type", ChaosClient.CONTENT_TYPE);
            String refusal = refusal(response);
            if (refusal == null) {
                return response.statusCode() == 201
                        ? new Ending.Responded(text(response))
                        : response.statusCode() == ChaosProvider.REJECTED
                                ? new Ending.Rejected(text(response))
                                : new Ending.Unknown("status " + response.statusCode());
            }
            if (refusal.equals("result-unavailable")) {
                return new Ending.ResultUnavailable();
            }
            if (System.nanoTime() > end || refusal.equals("outcome-unknown")) {
                return new Ending.Unknown(refusal);
            }
        }
    }

    @Override
    public void close() throws Exception {
        network.close();
        hc5.close();
        for (ProviderProcess provider : providers) {
            provider.close();
        }
        for (DelayProxy link : links) {
            link.close();
        }
        redis.close();
        Files.delete(ledger);
    }
}
