package io.idempotence.it.chaos;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.net.URI;
import java.util.Arrays;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;

/**
 * The network between the clients and two providers. It sends each attempt of a call to the providers in turn and passes over one that
 * refuses connections. The seed, the call and the number of the attempt determine the fault of the attempt.
 */
final class ChaosNetwork implements AutoCloseable {
    /** The fault of an attempt. */
    enum Fault {
        NONE(56),
        /** No provider sees it. */
        RESET_BEFORE_FORWARDING(6),
        /** Reset while a provider works. */
        RESET_AFTER_FORWARDING(8),
        RESPONSE_LOST(8),
        /** A part of the response comes, then a reset. */
        RESPONSE_CUT(6),
        /** A moment late. */
        DELAYED(5),
        /** The response comes when its caller has given up waiting. */
        LATE(2),
        /** The response comes byte by byte. */
        SLOW(3),
        /** Both providers get it at once. */
        DUPLICATED(6);

        private final int percent;

        Fault(int percent) {
            this.percent = percent;
        }

        private static Fault of(int percent) {
            int sum = 0;
            for (Fault fault : values()) {
                sum += fault.percent;
                if (percent < sum) {
                    return fault;
                }
            }
            throw new IllegalStateException("the shares sum up to " + sum);
        }
    }

    private final long seed;
    private final List<Supplier<URI>> providers;
    private final RawServer server;
    private final ExecutorService twins = Executors.newCachedThreadPool();
    private final Map<String, AtomicInteger> attempts = new ConcurrentHashMap<>();
    private final Map<String, Set<String>> ids = new ConcurrentHashMap<>();
    private final Collection<Forwarded> forwarded = new ConcurrentLinkedQueue<>();
    private final Map<Fault, AtomicInteger> counts = new EnumMap<>(Fault.class);

    ChaosNetwork(long seed, List<Supplier<URI>> providers) {
        this.seed = seed;
        this.providers = providers;
        Arrays.stream(Fault.values()).forEach(fault -> counts.put(fault, new AtomicInteger()));
        this.server = RawServer.start(this::handle);
    }

    String url() {
        return server.url();
    }

    Map<Fault, AtomicInteger> counts() {
        return counts;
    }

    /** The IDs in the requests of a call, whether they were forwarded or not. */
    Set<String> ids(String call) {
        return ids.getOrDefault(call, Set.of());
    }

    /** What the providers have got so far. */
    List<Forwarded> forwarded() {
        return List.copyOf(forwarded);
    }

    private void handle(RawRequest request, Socket client) throws IOException {
        String call = Work.of(request.text()).call();
        ids.computeIfAbsent(call, c -> ConcurrentHashMap.newKeySet()).add(id(request));
        int n = attempts.computeIfAbsent(call, c -> new AtomicInteger()).incrementAndGet();
        RandomGenerator random = ChaosPlan.random(seed, call + '#' + n);
        Fault fault = Fault.of(random.nextInt(100));
        counts.get(fault).incrementAndGet();
        if (fault == Fault.RESET_BEFORE_FORWARDING) {
            RawServer.reset(client);
            return;
        }
        if (fault == Fault.DELAYED) {
            ChaosPlan.pause(random.nextInt(50, 400));
        }
        if (fault == Fault.RESET_AFTER_FORWARDING) {
            forward(request, n, () -> RawServer.reset(client));
            return;
        }
        byte[] response = fault == Fault.DUPLICATED ? exchangeTwice(request, n) : exchange(request, n);
        pass(fault, response, client, random);
    }

    /** The caller's response is on its way only when the twin has ended, too: a twin that came later could prove no caller right. */
    private byte[] exchangeTwice(RawRequest request, int n) throws IOException {
        CompletableFuture<byte[]> twin = CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return exchange(request, n + 1);
                    } catch (IOException e) {
                        throw new CompletionException(e);
                    }
                },
                twins);
        try {
            return exchange(request, n);
        } finally {
            twin.exceptionally(e -> new byte[0]).join();
        }
    }

    private byte[] exchange(RawRequest request, int n) throws IOException {
        return forward(request, n, () -> {});
    }

    private static String id(RawRequest request) {
        String header = request.header(IdempotenceHeaders.IDEMPOTENCY_KEY);
        return IdempotencyKeyHeader.standard()
                .parse(header == null ? List.of() : List.of(header))
                .map(IdempotenceId::value)
                .orElse("none");
    }

    private interface WhenSent {
        void run() throws IOException;
    }

    private byte[] forward(RawRequest request, int n, WhenSent whenSent) throws IOException {
        IOException down = null;
        for (int i = 0; i < providers.size(); i++) {
            int which = (n + i) % providers.size();
            URI address = providers.get(which).get();
            long from = System.nanoTime();
            Socket provider;
            try {
                provider = new Socket(address.getHost(), address.getPort());
            } catch (IOException e) {
                down = e;
                continue;
            }
            try (provider) {
                provider.getOutputStream().write(request.forLastOfConnection());
                provider.getOutputStream().flush();
                whenSent.run();
                return provider.getInputStream().readAllBytes();
            } finally {
                forwarded.add(new Forwarded(Work.of(request.text()).call(), which, from, System.nanoTime()));
            }
        }
        throw new IOException("no provider is up", down);
    }

    private static void pass(Fault fault, byte[] response, Socket client, RandomGenerator random) throws IOException {
        OutputStream out = client.getOutputStream();
        switch (fault) {
            case RESPONSE_LOST -> RawServer.reset(client);
            case RESPONSE_CUT -> {
                out.write(response, 0, response.length == 0 ? 0 : random.nextInt(response.length));
                out.flush();
                RawServer.reset(client);
            }
            case LATE -> {
                ChaosPlan.pause(ChaosClient.READ_TIMEOUT.plusMillis(random.nextInt(100, 1_000)));
                out.write(response);
                out.flush();
            }
            case SLOW -> {
                for (byte one : response) {
                    out.write(one);
                    out.flush();
                    ChaosPlan.pause(1);
                }
            }
            default -> {
                out.write(response);
                out.flush();
            }
        }
    }

    @Override
    public void close() {
        server.close();
        twins.shutdownNow();
    }
}
