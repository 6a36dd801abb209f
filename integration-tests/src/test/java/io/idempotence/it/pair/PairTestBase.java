package io.idempotence.it.pair;

import feign.Client;
import feign.Feign;
import feign.Request;
import feign.Target.HardCodedTarget;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.it.container.TomcatServer;
import io.idempotence.it.wire.FaultyProxy;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import okhttp3.OkHttpClient;
import org.junit.jupiter.api.AfterEach;

/**
 * The base of tests with a client, a proxy that does what networks do, and two instances of one provider in two containers, each with its
 * own {@link Idempotence}.
 */
abstract class PairTestBase {
    static final int READ_TIMEOUT_MILLIS = 600;

    final Ledger ledger = new Ledger();
    final AtomicReference<Handler> handler = new AtomicReference<>(this::payOrder);
    final List<IdempotenceClientEvent> events = new CopyOnWriteArrayList<>();
    IdempotencePolicy policy = IdempotencePolicy.defaults();
    final List<Idempotence> idempotences = new ArrayList<>();
    private final List<AutoCloseable> toClose = new ArrayList<>();
    private final OkHttpClient okHttp = new OkHttpClient();
    private URI[] instances;
    FaultyProxy proxy;

    /** Starts both instances; each gets a storage of its own. */
    final void startProvider(Supplier<IdempotenceStorage> storages) {
        instances =
                new URI[] {instance(JettyServer::start, storages.get()), instance(TomcatServer::start, storages.get())};
    }

    private URI instance(ServletServer.Starter starter, IdempotenceStorage storage) {
        Idempotence idempotence = Idempotence.builder(storage).policy(policy).build();
        idempotences.add(idempotence);
        toClose.add(idempotence);
        ServletServer server = starter.start(
                context -> {
                    IdempotenceFilter.install(context, idempotence, "/payments");
                    context.addServlet(
                                    "payments",
                                    ServletServer.servlet(
                                            (request, response) -> handler.get().handle(request, response)))
                            .addMapping("/payments");
                },
                null);
        toClose.add(server);
        return server.uri("/");
    }

    /** Puts a proxy with this plan between client and provider. */
    final Payments through(FaultyProxy.Plan plan) {
        return through(plan, fast());
    }

    final Payments through(FaultyProxy.Plan plan, IdempotenceClientConfigBuilder config) {
        return through(plan, config, new feign.okhttp.OkHttpClient(okHttp), READ_TIMEOUT_MILLIS, instances);
    }

    final Payments through(
            FaultyProxy.Plan plan,
            IdempotenceClientConfigBuilder config,
            Client client,
            int readTimeoutMillis,
            URI... providers) {
        return through(plan, config, feign(client, readTimeoutMillis), providers);
    }

    static Feign.Builder feign(Client client, int readTimeoutMillis) {
        return Feign.builder()
                .client(client)
                .options(new Request.Options(5, TimeUnit.SECONDS, readTimeoutMillis, TimeUnit.MILLISECONDS, true));
    }

    final Payments through(
            FaultyProxy.Plan plan, IdempotenceClientConfigBuilder config, Feign.Builder builder, URI... providers) {
        proxy = FaultyProxy.start(plan, providers);
        toClose.add(proxy);
        return IdempotentFeign.install(builder, config.build())
                .target(new HardCodedTarget<>(Payments.class, "payments", proxy.url()));
    }

    final Client okHttp() {
        return new feign.okhttp.OkHttpClient(okHttp);
    }

    final URI[] instances() {
        return instances;
    }

    /** Short waits, time enough, and attempts enough for every fault a test injects. */
    final IdempotenceClientConfigBuilder fast() {
        return IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(5))
                .maxWait(Duration.ofMillis(50))
                .maxAttempts(12)
                .deadline(Duration.ofSeconds(60))
                .listener(events::add);
    }

    private void payOrder(HttpServletRequest request, HttpServletResponse response) throws IOException {
        respond(response, 201, ledger.pay(order(request)));
    }

    static String order(HttpServletRequest request) throws IOException {
        return new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    static void respond(HttpServletResponse response, int status, String body) throws IOException {
        response.setStatus(status);
        response.setContentType("text/plain;charset=utf-8");
        response.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
    }

    @AfterEach
    final void closeAll() throws Exception {
        for (int i = toClose.size() - 1; i >= 0; i--) {
            toClose.get(i).close();
        }
        okHttp.dispatcher().executorService().shutdown();
        okHttp.connectionPool().evictAll();
    }

    /** One of many calls. */
    interface NumberedCall {
        String call(int number);
    }

    /** All calls at once; the responses by the numbers of the calls. */
    static Map<String, String> concurrently(int callers, NumberedCall call) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(callers);
        try {
            CountDownLatch ready = new CountDownLatch(callers);
            List<Future<String>> results = new ArrayList<>();
            for (int i = 0; i < callers; i++) {
                int number = i;
                Callable<String> waiting = () -> {
                    ready.countDown();
                    ready.await();
                    return call.call(number);
                };
                results.add(threads.submit(waiting));
            }
            Map<String, String> responses = new TreeMap<>();
            for (int i = 0; i < callers; i++) {
                responses.put(Integer.toString(i), results.get(i).get(6, TimeUnit.MINUTES));
            }
            return responses;
        } finally {
            threads.shutdownNow();
        }
    }
}
