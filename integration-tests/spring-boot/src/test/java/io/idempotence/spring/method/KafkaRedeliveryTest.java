package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.Idempotent;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
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
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.kafka.support.KafkaHeaders;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.util.backoff.FixedBackOff;

/** A message that a real broker delivers again takes effect once. */
@Timeout(120)
class KafkaRedeliveryTest {
    private static final List<String> EFFECTS = new CopyOnWriteArrayList<>();
    private static final List<String> DELIVERIES = new CopyOnWriteArrayList<>();
    /** Messages that reached a slow listener, and what its first run waits for. */
    private static final List<String> STARTED = new CopyOnWriteArrayList<>();

    private static final CountDownLatch MAY_END = new CountDownLatch(1);

    /** More than the processor of rollbacks allows, which a transactional container has by default. */
    private static final int RETRIES = 12;

    private static EmbeddedKafkaKraftBroker broker;
    private static IdempotenceStorage storage;
    private static KafkaTemplate<String, String> producer;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        broker = new EmbeddedKafkaKraftBroker(1, 1, "audits", "direct", "slow", "refused", "refused-dlt");
        broker.brokerProperty("transaction.state.log.replication.factor", "1");
        broker.brokerProperty("transaction.state.log.min.isr", "1");
        broker.afterPropertiesSet();
        storage = IdempotenceStorage.inMemory();
        producer = new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(toBroker()));
    }

    private static Map<String, Object> toBroker() {
        return Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.getBrokersAsString(),
                ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class,
                ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
    }

    @AfterAll
    static void stop() {
        producer.destroy();
        broker.destroy();
    }

    /** One process of the consumer. All share a storage, as they would share Redis. */
    private static ConfigurableApplicationContext consumer() {
        return start(Consumer.class);
    }

    private static ConfigurableApplicationContext start(Class<?> consumer) {
        return new SpringApplicationBuilder(consumer)
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
            ConcurrentKafkaListenerContainerFactory<String, String> factory = containers();
            factory.getContainerProperties().setAckMode(ContainerProperties.AckMode.MANUAL_IMMEDIATE);
            return factory;
        }
    }

    private static ConcurrentKafkaListenerContainerFactory<String, String> containers() {
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
        factory.getContainerProperties().setPollTimeout(100);
        return factory;
    }

    /** A consumer whose containers begin transactions, and whose storage does not respond. */
    @Configuration(proxyBeanMethods = false)
    @EnableKafka
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import({TestJson.class, RefusedListener.class})
    static class TransactionalConsumer {
        @Bean
        IdempotenceStorage storage() {
            return new FaultyStorage(IdempotenceStorage.inMemory()).before((call, key) -> {
                throw new StorageUnavailableException("the storage does not respond", null);
            });
        }

        @Bean
        KafkaTemplate<Object, Object> kafka() {
            DefaultKafkaProducerFactory<Object, Object> producers = new DefaultKafkaProducerFactory<>(toBroker());
            producers.setTransactionIdPrefix("payments-");
            return new KafkaTemplate<>(producers);
        }

        @Bean
        KafkaTransactionManager<Object, Object> kafkaTransactions(KafkaTemplate<Object, Object> kafka) {
            return new KafkaTransactionManager<>(kafka.getProducerFactory());
        }

        /** As the documentation says, with shorter pauses. */
        @Bean
        DefaultErrorHandler errors(KafkaTemplate<Object, Object> kafka) {
            FixedBackOff pauses = new FixedBackOff(1, RETRIES);
            DefaultErrorHandler errors = new DefaultErrorHandler(new DeadLetterPublishingRecoverer(kafka), pauses);
            errors.addNotRetryableExceptions(NoIdempotenceIdException.class);
            return errors;
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(
                KafkaTransactionManager<Object, Object> kafkaTransactions, DefaultErrorHandler errors) {
            ConcurrentKafkaListenerContainerFactory<String, String> factory = containers();
            factory.getContainerProperties().setKafkaAwareTransactionManager(kafkaTransactions);
            factory.setCommonErrorHandler(errors);
            return factory;
        }
    }

    static class RefusedListener {
        @KafkaListener(id = "refused", topics = "refused", properties = "fetch.max.wait.ms=10")
        @Idempotent(id = "#id")
        public void consume(@Payload String id) {
            EFFECTS.add(id);
        }

        @KafkaListener(id = "parked", topics = "refused-dlt")
        public void park(@Payload String id, @Header(KafkaHeaders.DLT_EXCEPTION_CAUSE_FQCN) String cause) {
            DELIVERIES.add("parked " + id + " after " + cause.substring(cause.lastIndexOf('.') + 1));
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

    /** The {@code DefaultAfterRollbackProcessor} of such a container gives up after ten attempts. The error handler must be stronger. */
    @Test
    void aMessageThatIsRefusedInATransactionalContainerIsParkedAndNotSkipped() {
        try (ConfigurableApplicationContext consumer = start(TransactionalConsumer.class)) {
            List<String> parked = Stream.of(id, id + "-next")
                    .map(each -> "parked " + each + " after ExecutionRefusedException")
                    .toList();
            producer.send("refused", "");
            producer.send("refused", id);
            producer.send("refused", id + "-next");
            await().atMost(Duration.ofSeconds(60)).until(() -> deliveriesOf(parked.get(1)) == 1);
            assertThat(DELIVERIES).contains("parked  after NoIdempotenceIdException", parked.get(0));
        }
        assertThat(effectsOf(id)).isZero();
    }
}
