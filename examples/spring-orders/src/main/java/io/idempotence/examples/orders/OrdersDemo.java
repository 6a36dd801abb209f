package io.idempotence.examples.orders;

import io.idempotence.examples.orders.network.FaultyNetwork;
import io.idempotence.examples.orders.payments.PaymentsApplication;
import io.idempotence.examples.orders.shop.ShopApplication;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.springframework.boot.Banner;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import redis.embedded.RedisServer;

/**
 * A demo that starts PostgreSQL, Redis, the payment service, the network and the shop, and prints where to look. Ctrl-C stops
 * all of it.
 *
 * <p>One process holds both applications only to make one command of it. They share nothing but the class path.
 */
public final class OrdersDemo implements AutoCloseable {
    private final ReentrantLock starting = new ReentrantLock();
    private final Deque<AutoCloseable> started = new ArrayDeque<>();
    private volatile boolean stopped;
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
        OrdersDemo demo = new OrdersDemo();
        // Before anything starts: Ctrl-C may come while PostgreSQL runs and the shop does not yet.
        Runtime.getRuntime().addShutdownHook(new Thread(demo::close, "stop"));
        demo.startAllOrNothing();
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
        demo.startAllOrNothing();
        return demo;
    }

    private void startAllOrNothing() throws Exception {
        try {
            startAll();
        } catch (Throwable e) {
            close();
            throw e;
        }
    }

    private void startAll() throws Exception {
        EmbeddedPostgres postgres = start(OrdersDemo::postgres);
        int redisPort = freePort();
        start(() -> redis(redisPort));
        Map<String, Object> services = Map.of(
                "server.port",
                0,
                "spring.datasource.url",
                postgres.getJdbcUrl("postgres", "postgres"),
                "spring.data.redis.port",
                redisPort,
                "spring.security.user.password",
                password);
        payments = start(() -> new SpringApplicationBuilder(PaymentsApplication.class)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties(services)
                .run("--spring.config.name=payments"));
        network = start(() -> FaultyNetwork.open(paymentsUrl()));
        shop = start(() -> new SpringApplicationBuilder(ShopApplication.class)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties(services)
                .initializers((GenericApplicationContext context) ->
                        context.registerBean(FaultyNetwork.class, () -> network, bean -> bean.setDestroyMethodName("")))
                .run("--spring.config.name=shop", "--payments.url=" + network.url()));
    }

    /** Starts one part, unless the example is being stopped. Stopping waits for the part, so that none is left over. */
    private <T extends AutoCloseable> T start(Callable<T> part) throws Exception {
        starting.lock();
        try {
            if (stopped) {
                throw new IllegalStateException("stopped during the start");
            }
            T resource = part.call();
            started.push(resource);
            return resource;
        } finally {
            starting.unlock();
        }
    }

    /** Both servers come with shutdown hooks, which do not help if Ctrl-C comes while the server starts. */
    private static EmbeddedPostgres postgres() throws IOException {
        Path data = Files.createTempDirectory("orders-postgres");
        try {
            return EmbeddedPostgres.builder().setDataDirectory(data).start();
        } catch (Throwable e) {
            Path running = data.resolve("postmaster.pid");
            if (Files.exists(running)) {
                long pid = Long.parseLong(Files.readAllLines(running).get(0).strip());
                ProcessHandle.of(pid).ifPresent(ProcessHandle::destroy);
            }
            throw e;
        }
    }

    static AutoCloseable redis(int port) throws IOException {
        RedisServer redis = RedisServer.newRedisServer()
                .port(port)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .setting("appendonly no")
                .build();
        Set<ProcessHandle> others = children();
        try {
            redis.start();
        } catch (Throwable e) {
            Set<ProcessHandle> ofRedis = children();
            ofRedis.removeAll(others);
            ofRedis.forEach(ProcessHandle::destroy);
            throw e;
        }
        return redis::stop;
    }

    private static Set<ProcessHandle> children() {
        return ProcessHandle.current().children().collect(Collectors.toCollection(HashSet::new));
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
        stopped = true;
        starting.lock();
        try {
            while (!started.isEmpty()) {
                stop(started.pop());
            }
        } finally {
            starting.unlock();
        }
    }

    private static void stop(AutoCloseable part) {
        try {
            part.close();
        } catch (Exception e) {
            System.err.println("Did not stop cleanly: " + e);
        }
    }
}
