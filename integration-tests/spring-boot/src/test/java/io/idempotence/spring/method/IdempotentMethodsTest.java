package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.idempotence.Idempotent;
import io.idempotence.http.Refusal;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.method.IdempotentOperation.Kind;
import io.idempotence.spring.method.IdempotentOperation.Origin;
import io.idempotence.spring.method.IdempotentOperation.Setting;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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

/** {@code @Idempotent} on methods of any bean. */
@Timeout(180)
class IdempotentMethodsTest {
    private static ConfigurableApplicationContext context;
    private static Payments payments;
    private static final AtomicInteger RUNS = new AtomicInteger();
    private static final CountDownLatch SLOW_BEGAN = new CountDownLatch(1);
    private static final CountDownLatch SLOW_ENDS = new CountDownLatch(1);

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        context = new SpringApplicationBuilder(Application.class)
                .properties("spring.main.web-application-type=none", "spring.main.banner-mode=off")
                .run();
        payments = context.getBean(Payments.class);
    }

    @AfterAll
    static void stop() {
        SLOW_ENDS.countDown();
        context.close();
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import({TestJson.class, Payments.class, Others.class})
    static class Application {
        @Bean
        IdempotenceStorage storage() {
            return IdempotenceStorage.inMemory();
        }

        @Bean
        Ledger ledger() {
            return new Ledger();
        }
    }

    record Message(String id, String tenant, Integer number, Object anything) {
        static Message of(String id) {
            return new Message(id, "t", 7, null);
        }
    }

    record Receipt(String number, BigDecimal amount, Instant at, List<String> lines) {}

    record Page<T>(List<T> items) {}

    record Booked(OffsetDateTime at, ZonedDateTime here) {}

    interface PaymentApi {
        @Idempotent(id = "#p0")
        String byInterface(String id);
    }

    static class NoMoneyException extends RuntimeException {}

    static class Payments implements PaymentApi {
        @Idempotent(id = "#message.id")
        public Receipt pay(Message message) {
            return new Receipt(
                    "no " + RUNS.incrementAndGet(),
                    new BigDecimal("12.50"),
                    Instant.ofEpochSecond(7),
                    List.of("a", "b"));
        }

        @Idempotent(id = "#message.id")
        public Page<Receipt> page(Message message) {
            return new Page<>(
                    List.of(new Receipt("no " + RUNS.incrementAndGet(), BigDecimal.ONE, Instant.EPOCH, List.of())));
        }

        @Idempotent(id = "#id")
        public Booked book(String id) {
            ZonedDateTime here =
                    LocalDate.of(2026, 1, RUNS.incrementAndGet()).atTime(0, 30).atZone(ZoneId.of("Europe/Berlin"));
            return new Booked(here.toOffsetDateTime(), here);
        }

        @Idempotent(id = "#id")
        public Map<String, List<Integer>> map(UUID id) {
            return Map.of("run", List.of(RUNS.incrementAndGet()));
        }

        @Idempotent(id = "#id")
        public Optional<String> optional(String id, boolean present) {
            RUNS.incrementAndGet();
            return present ? Optional.of("there") : Optional.empty();
        }

        @Idempotent(id = "#id")
        public void nothing(String id) {
            RUNS.incrementAndGet();
        }

        @Idempotent(id = "#id")
        public String nullResult(String id) {
            RUNS.incrementAndGet();
            return null;
        }

        @Idempotent(id = "#id")
        public int number(String id) {
            return RUNS.incrementAndGet();
        }

        @Idempotent(id = "#id")
        public CompletableFuture<Receipt> future(String id) {
            return CompletableFuture.supplyAsync(
                    () -> new Receipt("no " + RUNS.incrementAndGet(), BigDecimal.ONE, Instant.EPOCH, List.of()));
        }

        @Idempotent(id = "#id")
        public CompletionStage<Optional<String>> stage(String id) {
            return CompletableFuture.completedFuture(Optional.of("no " + RUNS.incrementAndGet()));
        }

        @Idempotent(id = "#id", keepOn = NoMoneyException.class)
        public String fails(String id, RuntimeException how) {
            RUNS.incrementAndGet();
            throw how;
        }

        @Idempotent(id = "{#message.tenant, #message.number}")
        public int several(Message message) {
            return RUNS.incrementAndGet();
        }

        @Idempotent(id = "#message.anything")
        public int anything(Message message) {
            return RUNS.incrementAndGet();
        }

        @Idempotent(id = "@ledger.idOf(#order)", operation = "order")
        public int byBean(String order) {
            return RUNS.incrementAndGet();
        }

        @Idempotent(id = "#id", maxWait = "0s")
        public String slow(String id) throws InterruptedException {
            SLOW_BEGAN.countDown();
            SLOW_ENDS.await();
            return "slow";
        }

        @Idempotent(id = "#id", maxWait = "20s")
        public String patient(String id, CompletableFuture<String> until) {
            RUNS.incrementAndGet();
            return until.join();
        }

        @Override
        public String byInterface(String id) {
            return "no " + RUNS.incrementAndGet();
        }

        public int itself(String id) {
            return number(id);
        }
    }

    @Idempotent(id = "#id")
    static class Others {
        public int number(String id) {
            return RUNS.incrementAndGet();
        }

        @Idempotent(false)
        public int always(String id) {
            return RUNS.incrementAndGet();
        }
    }

    static class Ledger {
        public String idOf(String order) {
            return "ledger-" + order;
        }
    }

    @Test
    @DisplayName("P4: a time comes back in its own zone")
    void aTimeComesBackInItsOwnZone() {
        String id = UUID.randomUUID().toString();
        RUNS.set(0);
        assertThat(payments.book(id)).isEqualTo(payments.book(id));
        assertThat(RUNS).hasValue(1);
    }

    @Test
    @DisplayName("P4: a later call gets the first one's result, with its types")
    void aLaterCallGetsTheFirstResult() {
        Receipt first = payments.pay(Message.of(id));
        assertThat(payments.pay(Message.of(id))).isEqualTo(first);
        assertThat(payments.pay(Message.of(id + "b"))).isNotEqualTo(first);
        Page<Receipt> page = payments.page(Message.of(id));
        assertThat(payments.page(Message.of(id))).isEqualTo(page);
        UUID uuid = UUID.randomUUID();
        assertThat(payments.map(uuid)).isEqualTo(payments.map(uuid));
        assertThat(payments.number(id)).isEqualTo(payments.number(id));
        assertThat(payments.byInterface(id)).isEqualTo(payments.byInterface(id));
        assertThat(payments.byBean(id)).isEqualTo(payments.byBean(id));
    }

    @Test
    void nothingIsAResultToo() {
        int before = RUNS.get();
        payments.nothing(id);
        payments.nothing(id);
        assertThat(payments.nullResult(id)).isNull();
        assertThat(payments.nullResult(id)).isNull();
        assertThat(payments.optional(id, false)).isEmpty();
        assertThat(payments.optional(id, true)).as("the first one's").isEmpty();
        assertThat(payments.optional(id + "b", true)).contains("there");
        assertThat(payments.optional(id + "b", true)).contains("there");
        assertThat(RUNS).hasValue(before + 4);
    }

    @Test
    void futuresAreStoredWhenTheyComplete() {
        Receipt first = payments.future(id).join();
        assertThat(payments.future(id).join()).isEqualTo(first);
        Optional<String> stage = payments.stage(id).toCompletableFuture().join();
        assertThat(payments.stage(id).toCompletableFuture().join()).isEqualTo(stage);
    }

    @Test
    @DisplayName("P5: methods and classes do not share their IDs")
    void methodsDoNotShareTheirIds() {
        Others others = context.getBean(Others.class);
        assertThat(others.number(id)).isNotEqualTo(payments.number(id));
        assertThat(others.number(id)).isEqualTo(others.number(id));
        assertThat(others.always(id)).isNotEqualTo(others.always(id));
    }

    @Test
    void severalValuesAreOneId() {
        int first = payments.several(new Message("a", "t", 7, null));
        assertThat(payments.several(new Message("b", "t", 7, null))).isEqualTo(first);
        assertThat(payments.several(new Message("a", "u", 7, null))).isNotEqualTo(first);
        assertThatThrownBy(() -> payments.several(new Message("a", "t", null, null)))
                .isInstanceOf(NoIdempotenceIdException.class)
                .hasMessageContaining("\"{#message.tenant, #message.number}\", is null");
    }

    @Test
    @DisplayName("P6: without an ID the method does not run")
    void withoutAnIdTheMethodDoesNotRun() {
        int before = RUNS.get();
        assertThatThrownBy(() -> payments.pay(Message.of(null)))
                .isInstanceOf(NoIdempotenceIdException.class)
                .hasMessage("the ID of a call of Payments.pay, \"#message.id\", is null; the method did not run");
        assertThatThrownBy(() -> payments.pay(Message.of(" "))).hasMessageContaining("is blank");
        assertThatThrownBy(() -> payments.pay(Message.of("ü"))).hasMessageContaining("is not an idempotence ID");
        assertThatThrownBy(() -> payments.pay(null)).hasMessageContaining("cannot be evaluated");
        assertThatThrownBy(() -> payments.anything(new Message("a", "t", 7, new Object())))
                .hasMessageContaining("is a java.lang.Object; expected text, a number, a UUID or an enum");
        assertThat(RUNS).hasValue(before);
    }

    @Test
    void exceptionsDecideAboutTheId() {
        int before = RUNS.get();
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> payments.fails(id, new IllegalStateException("down")))
                    .isExactlyInstanceOf(IllegalStateException.class)
                    .hasMessage("down");
        }
        assertThat(RUNS).as("released").hasValue(before + 2);
        assertThatThrownBy(() -> payments.fails(id, new NoMoneyException()))
                .isExactlyInstanceOf(NoMoneyException.class);
        assertThat(refused(() -> payments.fails(id, new NoMoneyException()))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        assertThat(RUNS).as("kept").hasValue(before + 3);
    }

    private static Refusal refused(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
        return catchThrowableOfType(ExecutionRefusedException.class, call).refusal();
    }

    @Test
    void aDuplicateOfARunningCallIsRefusedOrWaits() throws Exception {
        CompletableFuture<String> slow = CompletableFuture.supplyAsync(() -> {
            try {
                return payments.slow(id);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        assertThat(SLOW_BEGAN.await(60, TimeUnit.SECONDS)).isTrue();
        assertThat(refused(() -> payments.slow(id))).isEqualTo(Refusal.IN_PROGRESS);
        SLOW_ENDS.countDown();
        assertThat(slow.get(60, TimeUnit.SECONDS)).isEqualTo("slow");

        int before = RUNS.get();
        CompletableFuture<String> until = new CompletableFuture<>();
        CompletableFuture<String> first = CompletableFuture.supplyAsync(() -> payments.patient(id, until));
        CompletableFuture<String> second = CompletableFuture.supplyAsync(() -> payments.patient(id, until));
        until.complete("done");
        assertThat(first.get(60, TimeUnit.SECONDS)).isEqualTo("done");
        assertThat(second.get(60, TimeUnit.SECONDS)).isEqualTo("done");
        assertThat(RUNS).hasValue(before + 1);
    }

    @Test
    void aCallOfTheSameObjectIsNotIntercepted() {
        assertThat(payments.itself(id)).isNotEqualTo(payments.itself(id));
    }

    @Test
    void methodsAreListed() {
        IdempotentOperation byBean = context.getBean(IdempotentOperations.class).all().stream()
                .filter(operation -> operation.handler().equals("Payments.byBean"))
                .findFirst()
                .orElseThrow();
        assertThat(byBean.kind()).isEqualTo(Kind.METHOD);
        assertThat(byBean.settings())
                .containsEntry("id", new Setting("@ledger.idOf(#order)", Origin.ANNOTATION))
                .containsEntry("operation", new Setting("order", Origin.ANNOTATION))
                .containsEntry("retention", new Setting("1d", Origin.DEFAULT));
    }
}
