package io.idempotence.examples.orders;

import io.idempotence.examples.orders.network.FaultyNetwork;
import io.idempotence.examples.orders.payments.PaymentsApplication;
import io.idempotence.examples.orders.shop.ShopApplication;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HexFormat;
import java.util.Map;
import org.springframework.boot.Banner;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import redis.embedded.RedisServer;

/**
 * Starts PostgreSQL, Redis, the payment service, the network and the shop, and prints where to look. Ctrl-C stops all of it.
 *
 * <p>One process holds both applications only to make one command of it. They share nothing but the class path.
 */
public final class OrdersDemo implements AutoCloseable {
    private final Deque<AutoCloseable> started = new ArrayDeque<>();
    private final String password = HexFormat.of().formatHex(new SecureRandom().generateSeed(4));
    private ConfigurableApplicationContext payments;
    private ConfigurableApplicationContext shop;
    private FaultyNetwork network;

    private OrdersDemo() {}

    /**
     * Runs the example until Ctrl-C.
     *
     * @param args none
     * @throws Exception if something does not start
     */
    public static void main(String[] args) throws Exception {
        LoggingSystem.get(OrdersDemo.class.getClassLoader()).beforeInitialize(); // what PostgreSQL prints is for nobody
        System.out.println("Starting PostgreSQL, Redis, a payment service and a shop...");
        OrdersDemo demo = start();
        Runtime.getRuntime().addShutdownHook(new Thread(demo::close, "stop"));
        System.out.println(demo.whereToLook());
        Thread.currentThread().join();
    }

    /**
     * Starts everything.
     *
     * @return the running example
     * @throws Exception if something does not start; what has started is stopped
     */
    static OrdersDemo start() throws Exception {
        OrdersDemo demo = new OrdersDemo();
        try {
            demo.startAll();
            return demo;
        } catch (Throwable e) {
            demo.close();
            throw e;
        }
    }

    private void startAll() throws Exception {
        EmbeddedPostgres postgres = keep(EmbeddedPostgres.start());
        int redisPort = freePort();
        RedisServer redis = RedisServer.newRedisServer()
                .port(redisPort)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .setting("appendonly no")
                .build();
        redis.start();
        keep(redis::stop);
        Map<String, Object> services = Map.of(
                "server.port",
                0,
                "spring.datasource.url",
                postgres.getJdbcUrl("postgres", "postgres"),
                "spring.data.redis.port",
                redisPort,
                "spring.security.user.password",
                password);
        payments = keep(new SpringApplicationBuilder(PaymentsApplication.class)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties(services)
                .run("--spring.config.name=payments"));
        network = keep(FaultyNetwork.open(paymentsUrl()));
        shop = keep(new SpringApplicationBuilder(ShopApplication.class)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties(services)
                .initializers((GenericApplicationContext context) ->
                        context.registerBean(FaultyNetwork.class, () -> network, bean -> bean.setDestroyMethodName("")))
                .run("--spring.config.name=shop", "--payments.url=" + network.url()));
    }

    private <T extends AutoCloseable> T keep(T resource) {
        started.push(resource);
        return resource;
    }

    /** Returns a port that is free now. */
    public static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static URI url(ConfigurableApplicationContext application) {
        return URI.create("http://localhost:" + application.getEnvironment().getProperty("local.server.port"));
    }

    URI shopUrl() {
        return url(shop);
    }

    URI paymentsUrl() {
        return url(payments);
    }

    String password() {
        return password;
    }

    FaultyNetwork network() {
        return network;
    }

    private String whereToLook() {
        return """

                The shop       %1$s/
                               Order, click twice, go back and send the form again. Break the network on the same page.
                The console    %2$s/idempotence
                               Login: operator, password: %3$s. What the payment service remembers; resolve what is unknown.
                Actuator       curl -u operator:%3$s %2$s/actuator/idempotence
                               curl -u operator:%3$s %2$s/actuator/health

                Ctrl-C stops everything.""".formatted(shopUrl(), paymentsUrl(), password);
    }

    /** Stops everything, the last started first. */
    @Override
    public void close() {
        while (!started.isEmpty()) {
            try {
                started.pop().close();
            } catch (Exception e) {
                System.err.println("Did not stop cleanly: " + e);
            }
        }
    }
}
