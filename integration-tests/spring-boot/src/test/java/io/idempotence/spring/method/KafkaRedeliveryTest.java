package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.Idempotent;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.kafka.support.KafkaHeaders;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Payload;

/** A message that a real broker delivers again takes effect once. */
@Timeout(120)
class KafkaRedeliveryTest {
    private static final List<String> EFFECTS = new CopyOnWriteArrayList<>();
    private static final List<String> DELIVERIES = new CopyOnWriteArrayList<>();
    /** Messages that reached a slow listener, and what its first run waits for. */
    private static final List<String> STARTED = new CopyOnWriteArrayList<>();

    private static final CountDownLatch MAY_END = new CountDownLatch(1);

    private static EmbeddedKafkaKraftBroker broker;
    private static IdempotenceStorage storage;
    private static KafkaTemplate<String, String> producer;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        broker = new EmbeddedKafkaKraftBroker(1, 1, "audits", "direct", "slow");
        broker.afterPropertiesSet();
        storage = IdempotenceStorage.inMemory();
        producer = new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.getBrokersAsString(),
                ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class,
                ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class)));
    }

    @AfterAll
    static void stop() {
        producer.destroy();
        broker.destroy();
    }

    /** One process of the consumer. All share a storage, as they would share Redis. */
    private static ConfigurableApplicationContext consumer() {
        return new SpringApplicationBuilder(Consumer.class)
                .properties("spring.main.web-application-type=none", "spring.main.banner-mode=off")
                .run();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableKafka
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import({
        TestJson.class,
        Listeners.class,
        Payments.class,
        DirectListener.class,
        SlowListener.class,
        SlowPayments.class
    })
    static class Consumer {
        /** Shared, and therefore not closed by one of the processes. */
        @Bean(destroyMethod = "")
        IdempotenceStorage storage() {
            return storage;
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory() {
            Map<String, Object> settings = new HashMap<>(Map.of(
                    ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG,
                    broker.getBrokersAsString(),
                    ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG,
                    StringDeserializer.class,
                    ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG,
                    StringDeserializer.class,
                    ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                    "earliest"));
            ConcurrentKafkaListenerContainerFactory<String, String> factory =
                    new ConcurrentKafkaListenerContainerFactory<>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings));
            factory.getContainerProperties().setAckMode(ContainerProperties.AckMode.MANUAL_IMMEDIATE);
            factory.getContainerProperties().setPollTimeout(100);
            return factory;
        }
    }

    static class Payments {
        @Idempotent(id = "#id", operation = "pay")
        public String pay(String id) {
            EFFECTS.add(id);
            return "paid " + id;
        }
    }

    static class Listeners {
        private final Payments payments;

        Listeners(Payments payments) {
            this.payments = payments;
        }

        @KafkaListener(id = "first-auditor", topics = "audits")
        public void first(@Payload String id, Acknowledgment offset) {
            DELIVERIES.add("first " + payments.pay(id));
            offset.acknowledge();
        }

        @KafkaListener(id = "second-auditor", topics = "audits")
        public void second(@Payload String id, Acknowledgment offset) {
            DELIVERIES.add("second " + payments.pay(id));
            offset.acknowledge();
        }
    }

    /** A listener that runs until the broker has given its message to another consumer. */
    static class SlowListener {
        private final SlowPayments payments;

        SlowListener(SlowPayments payments) {
            this.payments = payments;
        }

        @KafkaListener(id = "slow", topics = "slow", properties = "max.poll.interval.ms=1500")
        public void pay(@Payload String id, Acknowledgment offset) throws InterruptedException {
            STARTED.add(id);
            DELIVERIES.add(payments.pay(id));
            offset.acknowledge();
        }
    }

    static class SlowPayments {
        @Idempotent(id = "#id", operation = "pay-slowly", maxWait = "30s")
        public String pay(String id) throws InterruptedException {
            EFFECTS.add(id);
            MAY_END.await();
            return "slowly paid " + id;
        }
    }

    static class DirectListener {
        @KafkaListener(id = "direct", topics = "direct")
        @Idempotent(id = "#key")
        public void consume(
                @Payload String text, @Header(KafkaHeaders.RECEIVED_KEY) String key, Acknowledgment offset) {
            EFFECTS.add(key);
            offset.acknowledge();
        }
    }

    private static long effectsOf(String id) {
        return EFFECTS.stream().filter(id::equals).count();
    }

    private static long deliveriesOf(String result) {
        return DELIVERIES.stream().filter(result::equals).count();
    }

    @Test
    @DisplayName(
            "P2: a message that a rebalance gives to a second consumer, while the first still runs, takes effect once")
    void aRebalanceInTheMiddleOfAListenerTakesEffectOnce() {
        try (ConfigurableApplicationContext first = consumer()) {
            producer.send("slow", id);
            await().atMost(Duration.ofSeconds(60)).until(() -> STARTED.size() == 1);
            try (ConfigurableApplicationContext second = consumer()) {
                // The first one does not poll in time, so the broker gives its partition away.
                await().atMost(Duration.ofSeconds(60)).until(() -> STARTED.size() == 2);
                assertThat(effectsOf(id)).isEqualTo(1);
                MAY_END.countDown();
                await().atMost(Duration.ofSeconds(60)).until(() -> deliveriesOf("slowly paid " + id) == 2);
            }
        }
        assertThat(effectsOf(id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P2: two consumers of one message, and two copies of it, take effect once")
    void twoConsumersOfOneMessageTakeEffectOnce() {
        try (ConfigurableApplicationContext consumer = consumer()) {
            producer.send("audits", id);
            producer.send("audits", id);
            producer.send("direct", id, "text");
            producer.send("direct", id, "text");
            String other = id + "-other";
            producer.send("direct", other, "text");
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> deliveriesOf("first paid " + id) == 2
                            && deliveriesOf("second paid " + id) == 2
                            && effectsOf(other) == 1);
        }
        assertThat(effectsOf(id))
                .as("one payment, and one of the direct listener")
                .isEqualTo(2);
    }
}
