package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import io.idempotence.OnAbandoned;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;
import org.springframework.messaging.handler.annotation.Payload;

/** A consumer's process is killed in the middle of its listeners. The broker gives its messages to another process. Both share a Redis. */
@Timeout(200)
@Tag("all")
class KafkaCrashTest {
    private static final List<String> TOPICS = List.of("completed", "refused", "taken-over");

    @TempDir
    private Path directory;

    @Test
    @DisplayName("P2, P6: messages whose consumer is killed take effect once, or are refused as unknown")
    void messagesWhoseConsumerIsKilledTakeEffectOnce() throws Exception {
        Path ledger = Files.createFile(directory.resolve("ledger"));
        String id = UUID.randomUUID().toString();
        EmbeddedKafkaKraftBroker broker = new EmbeddedKafkaKraftBroker(1, 1, TOPICS.toArray(String[]::new));
        broker.brokerProperty("group.min.session.timeout.ms", "1000");
        broker.afterPropertiesSet();
        DefaultKafkaProducerFactory<String, String> producers = new DefaultKafkaProducerFactory<>(Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.getBrokersAsString(),
                ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class,
                ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class));
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                ConsumerProcess first = ConsumerProcess.start(broker, redis, ledger, "holds")) {
            KafkaTemplate<String, String> producer = new KafkaTemplate<>(producers);
            for (String topic : TOPICS) {
                producer.send(topic, id).get();
            }
            first.awaitLines("completed holds", "refused holds", "taken-over holds");
            assertThat(Files.readAllLines(ledger)).containsExactlyInAnyOrderElementsOf(TOPICS);
            first.close();

            try (ConsumerProcess second = ConsumerProcess.start(broker, redis, ledger, "ends")) {
                second.awaitLines(
                        "completed delivered: paid",
                        "refused delivered: OUTCOME_UNKNOWN",
                        "taken-over delivered: paid before, taken over");
            }
            assertThat(Files.readAllLines(ledger)).containsExactlyInAnyOrderElementsOf(TOPICS);
        } finally {
            producers.destroy();
            broker.destroy();
        }
    }

    /** A consumer with a JVM of its own. */
    private record ConsumerProcess(Process process, BufferedReader output) implements AutoCloseable {
        static ConsumerProcess start(EmbeddedKafkaKraftBroker broker, EmbeddedRedis redis, Path ledger, String end)
                throws IOException {
            Process process = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            "-XX:TieredStopAtLevel=1",
                            "-XX:+UseSerialGC",
                            "-cp",
                            System.getProperty("java.class.path"),
                            KafkaCrashTest.class.getName(),
                            "--broker=" + broker.getBrokersAsString(),
                            "--redis=" + redis.port(),
                            "--ledger=" + ledger,
                            "--at-the-end=" + end)
                    .redirectErrorStream(true)
                    .start();
            // Reading its output cannot be interrupted.
            CompletableFuture.delayedExecutor(180, TimeUnit.SECONDS).execute(process::destroyForcibly);
            return new ConsumerProcess(process, process.inputReader());
        }

        void awaitLines(String... expected) throws IOException {
            Set<String> missing = new HashSet<>(Set.of(expected));
            StringBuilder seen = new StringBuilder();
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                seen.append(line).append('\n');
                missing.remove(line);
                if (missing.isEmpty()) {
                    return;
                }
                assertThat(line.contains(" delivered: ") && !List.of(expected).contains(line))
                        .as("the consumer printed \"%s\", expected %s:%n%s", line, missing, seen)
                        .isFalse();
            }
            throw new AssertionError("the consumer ended without " + missing + ":\n" + seen);
        }

        /** SIGKILL: neither Spring nor the Kafka client can do anything. */
        @Override
        public void close() throws IOException, InterruptedException {
            process.destroyForcibly().waitFor();
            output.close();
        }
    }

    public static void main(String[] args) throws IOException {
        new SpringApplicationBuilder(Consumer.class)
                .properties(
                        "spring.main.web-application-type=none",
                        "spring.application.name=consumer",
                        "idempotence.server.redis.timeout=20s")
                .run(args);
        awaitTheEndOfTheTest();
    }

    private static void awaitTheEndOfTheTest() throws IOException {
        while (System.in.read() >= 0) {
            // The test writes nothing.
        }
        Runtime.getRuntime().halt(1);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableKafka
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import({TestJson.class, Listeners.class, Payments.class})
    static class Consumer {
        @Bean
        LettuceConnectionFactory redis(@Value("${redis}") int port) {
            return new LettuceConnectionFactory("127.0.0.1", port);
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(
                @Value("${broker}") String broker) {
            ConcurrentKafkaListenerContainerFactory<String, String> factory =
                    new ConcurrentKafkaListenerContainerFactory<>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(Map.of(
                    ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG,
                    broker,
                    ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG,
                    StringDeserializer.class,
                    ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG,
                    StringDeserializer.class,
                    ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                    "earliest",
                    ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG,
                    3000,
                    ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG,
                    500)));
            factory.getContainerProperties().setAckMode(ContainerProperties.AckMode.MANUAL_IMMEDIATE);
            return factory;
        }
    }

    static class Listeners {
        private final Payments payments;

        Listeners(Payments payments) {
            this.payments = payments;
        }

        @KafkaListener(id = "completed", topics = "completed")
        public void completed(@Payload String id, Acknowledgment offset) {
            String result = payments.complete(id);
            payments.endOf("completed");
            delivered("completed", result, offset);
        }

        @KafkaListener(id = "refused", topics = "refused")
        public void refused(@Payload String id, Acknowledgment offset) {
            try {
                delivered("refused", payments.refuse(id), offset);
            } catch (ExecutionRefusedException e) {
                delivered("refused", e.refusal().name(), offset);
            }
        }

        @KafkaListener(id = "taken-over", topics = "taken-over")
        public void takenOver(@Payload String id, Acknowledgment offset) {
            delivered("taken-over", payments.takeOver(id), offset);
        }

        private static void delivered(String topic, String what, Acknowledgment offset) {
            offset.acknowledge();
            System.out.println(topic + " delivered: " + what);
        }
    }

    /** A payment is a line in the ledger. Its process is killed afterwards. */
    static class Payments {
        private final Path ledger;
        private final boolean holds;

        Payments(@Value("${ledger}") Path ledger, @Value("${at-the-end}") String end) {
            this.ledger = ledger;
            this.holds = end.equals("holds");
        }

        @Idempotent(id = "#id", operation = "complete")
        public String complete(String id) {
            return pay("completed");
        }

        @Idempotent(id = "#id", operation = "refuse", lease = "5s", maxWait = "60s")
        public String refuse(String id) {
            String paid = pay("refused");
            endOf("refused");
            return paid;
        }

        @Idempotent(
                id = "#id",
                operation = "take-over",
                lease = "5s",
                maxWait = "60s",
                onAbandoned = OnAbandoned.RE_EXECUTE)
        public String takeOver(String id) {
            boolean takenOver = IdempotentExecution.current().get(0).takenOver();
            if (takenOver && isPaid("taken-over")) {
                return "paid before, taken over";
            }
            String paid = pay("taken-over");
            endOf("taken-over");
            return paid;
        }

        private boolean isPaid(String what) {
            try {
                return Files.readAllLines(ledger).contains(what);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        private String pay(String what) {
            try {
                Files.writeString(ledger, what + "\n", StandardOpenOption.APPEND, StandardOpenOption.SYNC);
                return "paid";
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        /** Where the first process waits until it is killed. */
        void endOf(String what) {
            if (holds) {
                System.out.println(what + " holds");
                new Semaphore(0).acquireUninterruptibly();
            }
        }
    }
}
