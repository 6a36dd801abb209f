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
import java.util.stream.Collectors;
import redis.embedded.RedisServer;

/**
 * Measures what the starter costs an application that uses nothing of it: time to start, and time of a request without an ID. It runs the
 * same application with and without the starter's jars, in turn, and prints medians.
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

    /** The first connection to Redis loads several hundred classes of the driver, so one application needs it and one does not. */
    private static void starts(String with, String without, int redisPort) throws Exception {
        for (boolean usesRedis : new boolean[] {false, true}) {
            String option = "--cost.uses-redis=" + usesRedis;
            List<Double> ours = new ArrayList<>();
            List<Double> bare = new ArrayList<>();
            List<Double> added = new ArrayList<>();
            for (int i = 0; i < STARTS; i++) {
                double first = startMillis(i % 2 == 0 ? without : with, redisPort, option);
                double second = startMillis(i % 2 == 0 ? with : without, redisPort, option);
                bare.add(i % 2 == 0 ? first : second);
                ours.add(i % 2 == 0 ? second : first);
                added.add(ours.get(i) - bare.get(i));
            }
            System.out.printf(
                    "start of an application that %s Redis at start, ms: without %.0f, with %.0f;"
                            + " median of differences %+.0f, quartiles %+.0f and %+.0f%n",
                    usesRedis ? "uses" : "does not use",
                    median(bare),
                    median(ours),
                    median(added),
                    quantile(added, 0.25),
                    quantile(added, 0.75));
        }
    }

    private static double startMillis(String classPath, int redisPort, String option) throws Exception {
        try (ChildProcess application = start(classPath, redisPort, option)) {
            return application.startMillis();
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
        HttpRequest request = HttpRequest.newBuilder(URI.create(application.url() + "/free"))
                .POST(BodyPublishers.ofString("x"))
                .build();
        long begin = System.nanoTime();
        for (int i = 0; i < REQUESTS; i++) {
            if (client.send(request, BodyHandlers.discarding()).statusCode() != 200) {
                throw new IllegalStateException("the handler did not run");
            }
        }
        return (System.nanoTime() - begin) / 1e3 / REQUESTS;
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
