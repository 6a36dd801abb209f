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

    private static void starts(String with, String without, int redisPort) throws Exception {
        List<Double> ours = new ArrayList<>();
        List<Double> bare = new ArrayList<>();
        for (int i = 0; i < STARTS; i++) {
            try (ChildProcess application = start(without, redisPort)) {
                bare.add(application.startMillis());
            }
            try (ChildProcess application = start(with, redisPort)) {
                ours.add(application.startMillis());
            }
        }
        System.out.printf(
                "start, ms: without %.0f, with %.0f; difference of the medians %.0f%n",
                median(bare), median(ours), median(ours) - median(bare));
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

    private static ChildProcess start(String classPath, int redisPort) throws Exception {
        return ChildProcess.start(
                Path.of("target/test-classes").toAbsolutePath() + File.pathSeparator + classPath,
                CostApplication.class.getName(),
                "--spring.data.redis.port=" + redisPort);
    }

    private static double median(List<Double> values) {
        double[] sorted =
                values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return sorted[sorted.length / 2];
    }
}
