package io.idempotence.examples.orders.cost;

import io.idempotence.examples.orders.ChildProcess;
import io.idempotence.examples.orders.OrdersDemo;
import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import redis.embedded.RedisServer;

/**
 * A measurement of what the starter costs an application that uses nothing of it: time to start, and time of a request without an ID. It
 * runs the same application with and without the starter's jars, in turn, and prints medians.
 */
final class StarterCost {
    private static final int STARTS = 15;
    private static final int ROUNDS = 21;
    private static final int REQUESTS = 2_000;

    private StarterCost() {}

    public static void main(String[] args) throws Exception {
        int redisPort = OrdersDemo.freePort();
        RedisServer redis = RedisServer.newRedisServer()
                .port(redisPort)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .build();
        redis.start();
        try {
            String with = ChildProcess.quickStartClassPath();
            String without = Arrays.stream(with.split(File.pathSeparator))
                    .filter(entry -> !entry.contains("idempotence-"))
                    .collect(Collectors.joining(File.pathSeparator));
            starts(with, without, redisPort);
            requests(with, without, redisPort);
        } finally {
            redis.stop();
        }
    }

    /**
     * The first connection to Redis loads several hundred classes of the driver. One application makes it at its start, and one with its
     * first request. The control compares the application without the starter with itself.
     */
    private static void starts(String with, String without, int redisPort) throws Exception {
        starts("control, which uses Redis after its start", without, without, redisPort, false);
        starts("application that uses Redis after its start", with, without, redisPort, false);
        starts("application that uses Redis at its start", with, without, redisPort, true);
    }

    private static void starts(String what, String with, String without, int redisPort, boolean usesRedis)
            throws Exception {
        List<Start> ours = new ArrayList<>();
        List<Start> bare = new ArrayList<>();
        for (int i = 0; i < STARTS; i++) {
            Start first = start(i % 2 == 0 ? without : with, redisPort, usesRedis);
            Start second = start(i % 2 == 0 ? with : without, redisPort, usesRedis);
            bare.add(i % 2 == 0 ? first : second);
            ours.add(i % 2 == 0 ? second : first);
        }
        print("start of the " + what, ours, bare, Start::millis);
        print("the same until its first use of Redis has ended", ours, bare, Start::millisUntilRedis);
    }

    /** How long an application took to start, and until a first request that uses Redis had its response. */
    private record Start(double millis, double millisUntilRedis) {}

    private static void print(String what, List<Start> ours, List<Start> bare, ToDoubleFunction<Start> time) {
        List<Double> added = new ArrayList<>();
        for (int i = 0; i < ours.size(); i++) {
            added.add(time.applyAsDouble(ours.get(i)) - time.applyAsDouble(bare.get(i)));
        }
        System.out.printf(
                "%s, ms: without %.0f, with %.0f; median of differences %+.0f, quartiles %+.0f and %+.0f%n",
                what,
                median(bare.stream().map(time::applyAsDouble).toList()),
                median(ours.stream().map(time::applyAsDouble).toList()),
                median(added),
                quantile(added, 0.25),
                quantile(added, 0.75));
    }

    private static Start start(String classPath, int redisPort, boolean usesRedis) throws Exception {
        try (ChildProcess application = start(classPath, redisPort, "--cost.uses-redis=" + usesRedis)) {
            long begin = System.nanoTime();
            send(HttpClient.newHttpClient(), application, "/redis");
            double first = (System.nanoTime() - begin) / 1e6;
            return new Start(application.startMillis(), application.startMillis() + first);
        }
    }

    private static void requests(String with, String without, int redisPort) throws Exception {
        List<Double> ours = new ArrayList<>();
        List<Double> bare = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        try (ChildProcess a = start(without, redisPort);
                ChildProcess b = start(with, redisPort)) {
            HttpClient client = HttpClient.newHttpClient();
            for (int i = -5; i < ROUNDS; i++) {
                double first = micros(client, i % 2 == 0 ? a : b);
                double second = micros(client, i % 2 == 0 ? b : a);
                if (i >= 0) {
                    bare.add(i % 2 == 0 ? first : second);
                    ours.add(i % 2 == 0 ? second : first);
                    ratios.add(ours.get(i) / bare.get(i));
                }
            }
        }
        System.out.printf(
                "request without an ID, us: without %.1f, with %.1f; median of ratios %.3f%n",
                median(bare), median(ours), median(ratios));
    }

    private static double micros(HttpClient client, ChildProcess application) throws Exception {
        long begin = System.nanoTime();
        for (int i = 0; i < REQUESTS; i++) {
            send(client, application, "/free");
        }
        return (System.nanoTime() - begin) / 1e3 / REQUESTS;
    }

    private static void send(HttpClient client, ChildProcess application, String path) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(application.url() + path))
                .POST(BodyPublishers.ofString("x"))
                .build();
        if (client.send(request, BodyHandlers.discarding()).statusCode() != 200) {
            throw new IllegalStateException("the handler did not run");
        }
    }

    private static ChildProcess start(String classPath, int redisPort, String... options) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(options));
        arguments.add("--spring.data.redis.port=" + redisPort);
        return ChildProcess.start(
                Path.of("target/test-classes").toAbsolutePath() + File.pathSeparator + classPath,
                CostApplication.class.getName(),
                arguments.toArray(String[]::new));
    }

    private static double median(List<Double> values) {
        return quantile(values, 0.5);
    }

    private static double quantile(List<Double> values, double share) {
        double[] sorted =
                values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return sorted[(int) (sorted.length * share)];
    }
}
