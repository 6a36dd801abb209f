package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.Idempotent;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.method.IdempotenceMethodAutoConfiguration;
import java.time.Duration;
import java.util.UUID;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Protocol;

/** The start of an application whose Redis is missing or not set up well. */
@ExtendWith(OutputCaptureExtension.class)
class ServerStartTest {
    /** For what is not about the timeout. The first connection of a process may take longer than the default one. */
    private static final String PATIENT = "idempotence.server.redis.timeout=20s";

    /** Longer than a busy machine pauses, and shorter than the timeout of the application's own connections. */
    private static final Duration HANGS = Duration.ofMinutes(2);

    private final String id = UUID.randomUUID().toString();

    /** On a busy machine, the first connection of Lettuce takes longer than a start waits. */
    @BeforeAll
    static void connectOnce() {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            LettuceConnectionFactory lettuce = new LettuceConnectionFactory("127.0.0.1", redis.port());
            lettuce.start();
            lettuce.getConnection().close();
            lettuce.destroy();
        }
    }

    @Test
    void anApplicationStartsWhileItsRedisIsDownAndWorksOnceItIsUp(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            redis.kill();
            try (ConfigurableApplicationContext application =
                    Till.start(OnRedis.class, "--redis.port=" + redis.port())) {
                Caller caller = Caller.of(application);
                assertThat(output)
                        .contains("The storage does not respond yet: Redis (the application's driver) could not claim");
                assertThat(caller.post("/sales", id).statusCode()).isEqualTo(503);
                StorageHealth health = application.getBean(StorageHealth.class);
                assertThat(health.check().isUp()).isFalse();
                assertThat(health.check().details().get("reason"))
                        .asString()
                        .startsWith("Redis (the application's driver) could not");

                redis.restart();

                await().until(() -> caller.post("/sales", id).statusCode() == 200);
                assertThat(caller.post("/sales", id).body()).isEqualTo("sale 1");
                assertThat(health.check().isUp()).isTrue();
            }
        }
    }

    @Test
    void aRedisThatHangsHoldsNeitherTheStartNorARequest(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            redis.pause();
            long before = System.nanoTime();
            try (ConfigurableApplicationContext application =
                    Till.start(OnRedis.class, "--redis.port=" + redis.port())) {
                Caller caller = Caller.of(application);
                assertThat(output).contains("The storage does not respond yet");
                assertThat(caller.post("/sales", id).statusCode()).isEqualTo(503);
                assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(HANGS);
                redis.resume();
                await().until(() -> caller.post("/sales", id).statusCode() == 200);

                redis.pause();
                before = System.nanoTime();
                assertThat(caller.post("/sales", "other").statusCode()).isEqualTo(503);
                assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(HANGS);
                redis.resume();
            }
        }
    }

    @Test
    void aStartThatFailsForAnotherReasonDoesNotWaitForARedisThatHangs() {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            redis.pause();
            long before = System.nanoTime();
            assertThatThrownBy(() -> Till.start(Failing.class, "--redis.port=" + redis.port()))
                    .hasMessage("another reason");
            assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(HANGS);
            assertNoCheckRuns();
            redis.resume();
        }
    }

    @Test
    void anApplicationCanBeClosedWhileItsRedisHangs() {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            redis.pause();
            ConfigurableApplicationContext application = Till.start(OnRedis.class, "--redis.port=" + redis.port());
            long before = System.nanoTime();
            application.close();
            assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(HANGS);
            assertNoCheckRuns();
            redis.resume();
        }
    }

    private static void assertNoCheckRuns() {
        await().until(() -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().equals("idempotence-start")));
    }

    @Test
    void aRedisUserWithoutRightsFailsTheStart(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis()) {
            jedis.sendCommand(Protocol.Command.ACL, "SETUSER", "clerk", "on", ">pass", "~idem:*", "+@all", "-eval");

            failsToStart(redis, "--redis.user=clerk", "--redis.password=pass");

            assertThat(output)
                    .contains("The Redis user may not keep the records of the idempotence framework")
                    .contains("lacks the right +eval; grant it with ACL SETUSER <user> +eval")
                    .contains(
                            "ACL SETUSER <user> ~idem:* +evalsha +eval +get +getrange +exists +set +pexpire +pttl +del");
        }
    }

    @Test
    void aRefusalThatComesAfterTheStartIsLoggedOnceWithItsFix(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis()) {
            jedis.sendCommand(Protocol.Command.ACL, "SETUSER", "clerk", "on", ">pass", "~idem:*", "+@all", "-eval");
            redis.pause();
            try (ConfigurableApplicationContext application = Till.start(
                    OnRedis.class, "--redis.port=" + redis.port(), "--redis.user=clerk", "--redis.password=pass")) {
                assertThat(output).contains("The storage does not respond yet").doesNotContain("grant the user");

                redis.resume();

                assertNoCheckRuns();
                assertThat(output.getOut().lines().filter(line -> line.contains("ERROR")))
                        .filteredOn(line -> line.contains("The Redis user may not keep the records"))
                        .singleElement(STRING)
                        .contains("lacks the right +eval")
                        .contains("grant the user: ACL SETUSER <user> ~idem:* +evalsha +eval");
                assertThat(application.getBean(StorageHealth.class).check().isUp())
                        .isFalse();
            }
        }
    }

    @Test
    void healthIsUpWhileTheStorageIsFullButReplays() {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis();
                ConfigurableApplicationContext application =
                        Till.start(OnRedis.class, "--redis.port=" + redis.port(), "--" + PATIENT)) {
            Caller caller = Caller.of(application);
            await().until(() -> caller.post("/sales", id).statusCode() == 200);
            assertNoCheckRuns();

            jedis.configSet("maxmemory", "1");

            assertThat(caller.post("/sales", UUID.randomUUID().toString()).statusCode())
                    .isEqualTo(503);
            assertThat(caller.post("/sales", id).body()).isEqualTo("sale 1");
            assertThat(application.getBean(StorageHealth.class).check().isUp()).isTrue();
        }
    }

    @Test
    void aRedisUserWithoutRightsFailsTheStartOfAnApplicationWithoutAWebServer(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis()) {
            jedis.sendCommand(Protocol.Command.ACL, "SETUSER", "clerk", "on", ">pass", "~idem:*", "+@all", "-eval");

            failsToStart(() -> worker(redis, "--redis.user=clerk", "--redis.password=pass"));

            assertThat(output)
                    .contains("APPLICATION FAILED TO START")
                    .contains("The Redis user may not keep the records of the idempotence framework");
        }
    }

    @Test
    void anApplicationWithoutAWebServerLogsItsStorageAndWhetherItResponds(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            // A busy machine may not connect within the three seconds that a start waits.
            await().untilAsserted(() -> assertThat(logOfAStart(redis, output))
                    .containsOnlyOnce("Idempotence: records in the RedisConnectionFactory")
                    .doesNotContain("The storage does not respond yet"));
            redis.kill();
            assertThat(logOfAStart(redis, output)).containsOnlyOnce("The storage does not respond yet");
        }
    }

    private static String logOfAStart(EmbeddedRedis redis, CapturedOutput output) {
        int before = output.length();
        worker(redis).close();
        return output.toString().substring(before);
    }

    private static ConfigurableApplicationContext worker(EmbeddedRedis redis, String... arguments) {
        return new SpringApplicationBuilder(Worker.class)
                .web(WebApplicationType.NONE)
                .properties("spring.main.banner-mode=off", "redis.port=" + redis.port(), PATIENT)
                .run(arguments);
    }

    @Test
    void aWrongPasswordFailsTheStartAndIsNotShown(CapturedOutput output) {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis()) {
            jedis.configSet("requirepass", "right");

            failsToStart(redis, "--redis.password=mistaken");

            assertThat(output)
                    .contains("The Redis user may not keep the records of the idempotence framework")
                    .contains("Check user and password (spring.data.redis.username, spring.data.redis.password)")
                    .doesNotContain("mistaken");
        }
    }

    @Test
    void anApplicationStartsWhileItsDatabaseIsDown(CapturedOutput output) {
        try (ConfigurableApplicationContext application =
                Till.start(OnDatabase.class, "--idempotence.server.storage=jdbc")) {
            assertThat(output).contains("The storage does not respond yet");
            assertThat(Caller.of(application).post("/sales", id).statusCode()).isEqualTo(503);
        }
    }

    @Test
    void aJedisClientKeepsTheRecords() {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                ConfigurableApplicationContext application = Till.start(
                        OnJedis.class, "--redis.port=" + redis.port(), "--idempotence.server.paths=/sales")) {
            Caller caller = Caller.of(application);

            assertThat(caller.post("/sales", id).body())
                    .isEqualTo(caller.post("/sales", id).body());
            try (Jedis jedis = redis.jedis()) {
                assertThat(jedis.keys("idem:default:*")).hasSize(1);
            }
        }
    }

    @Test
    void aCompletionThatWaitsIsWrittenWhenTheApplicationEnds() throws Exception {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis();
                IdempotenceStorage looking = redis.connect()) {
            ConfigurableApplicationContext application =
                    Till.start(OnRedis.class, "--redis.port=" + redis.port(), "--" + PATIENT);
            application.getBean(Idempotence.class).execute(IdempotenceId.of(id), () -> {
                jedis.configSet("min-replicas-to-write", "1");
                return "paid";
            });
            // Redis takes writes again when the web server has stopped.
            application
                    .getBeanFactory()
                    .registerSingleton("repair", new AtStop(() -> jedis.configSet("min-replicas-to-write", "0")));
            application.close();

            IdempotenceAdmin admin = IdempotenceAdmin.of(looking, "default");
            assertThat(admin.find(admin.executeKey(IdempotenceId.of(id))))
                    .hasValueSatisfying(record -> assertThat(record.state()).isEqualTo(State.COMPLETED));
        }
    }

    private record AtStop(Runnable work) implements SmartLifecycle {
        @Override
        public void start() {}

        @Override
        public void stop() {
            work.run();
        }

        @Override
        public boolean isRunning() {
            return true;
        }

        @Override
        public int getPhase() {
            return 10_000;
        }
    }

    private static void failsToStart(EmbeddedRedis redis, String... arguments) {
        String[] all = new String[arguments.length + 1];
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        all[0] = "--redis.port=" + redis.port();
        failsToStart(() -> Till.start(OnRedis.class, all));
    }

    private static void failsToStart(Supplier<ConfigurableApplicationContext> start) {
        // On a busy machine the first connection may take longer than a start waits for it.
        await().atMost(Duration.ofMinutes(2)).until(() -> {
            try {
                start.get().close();
                return false;
            } catch (RuntimeException e) {
                return true;
            }
        });
    }

    @Configuration(proxyBeanMethods = false)
    static class Failing extends OnRedis {
        @Bean
        SmartInitializingSingleton fault() {
            return () -> {
                throw new IllegalStateException("another reason");
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OnDatabase extends Till {
        @Bean
        DataSource database() {
            PGSimpleDataSource database = new PGSimpleDataSource();
            // Nothing listens on this port.
            database.setURL("jdbc:postgresql://127.0.0.1:1/sales");
            return database;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OnJedis extends Till {
        @Bean
        JedisPooled client(Environment environment) {
            return new JedisPooled(
                    new HostAndPort("127.0.0.1", environment.getRequiredProperty("redis.port", int.class)),
                    DefaultJedisClientConfig.builder().timeoutMillis(20_000).build());
        }
    }

    /** An application that serves messages, not requests. */
    static class Messages {
        @Idempotent(id = "#id")
        public String receive(String id) {
            return id;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import(Messages.class)
    static class Worker {
        @Bean
        RedisConnectionFactory connections(Environment environment) {
            return new OnRedis().connections(environment);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OnRedis extends Till {
        @Bean
        RedisConnectionFactory connections(Environment environment) {
            RedisStandaloneConfiguration place = new RedisStandaloneConfiguration(
                    "127.0.0.1", environment.getRequiredProperty("redis.port", int.class));
            place.setUsername(environment.getProperty("redis.user"));
            place.setPassword(environment.getProperty("redis.password"));
            return new LettuceConnectionFactory(
                    place,
                    LettuceClientConfiguration.builder()
                            .commandTimeout(HANGS.multipliedBy(2))
                            .build());
        }
    }
}
