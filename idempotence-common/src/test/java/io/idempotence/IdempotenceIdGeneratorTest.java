package io.idempotence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceIdGenerator.BusinessFields;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IdempotenceIdGeneratorTest {
    private static final long EPOCH = Instant.parse("2020-01-01T00:00:00Z").toEpochMilli();

    @Test
    void uuidsAreRandomAndOfVersion4() {
        IdempotenceIdGenerator generator = IdempotenceIdGenerator.uuid();
        UUID one = UUID.fromString(generator.generateId().value());
        assertThat(one.version()).isEqualTo(4);
        assertThat(generator.generateId().value()).isNotEqualTo(one.toString());
    }

    @Test
    void prefixIdentifiesTheApplication() {
        String id = IdempotenceIdGenerator.applicationPrefixed("orders")
                .generateId()
                .value();
        assertThat(id).startsWith("orders-");
        assertThat(UUID.fromString(id.substring("orders-".length())).version()).isEqualTo(4);
    }

    @Test
    void prefixGoesInFrontOfAnyGenerator() {
        IdempotenceIdGenerator snowflake = IdempotenceIdGenerator.snowflake(7);
        assertThat(IdempotenceIdGenerator.applicationPrefixed("orders", snowflake)
                        .generateId()
                        .value())
                .matches("orders-\\d+");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "-a", "a b", "a/b", "ü", "a\r\nX: y"})
    void prefixMustBeAName(String application) {
        assertThatThrownBy(() -> IdempotenceIdGenerator.applicationPrefixed(application))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("application must be");
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 1024})
    void snowflakeNodeIsChecked(int node) {
        assertThatThrownBy(() -> IdempotenceIdGenerator.snowflake(node))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("0 to 1023, got " + node);
    }

    @Test
    void snowflakeHasMillisNodeAndSequence() {
        ManualClock clock = new ManualClock(EPOCH + 5);
        IdempotenceIdGenerator generator = IdempotenceIdGenerator.snowflake(1023, clock);
        assertThat(Long.parseLong(generator.generateId().value())).isEqualTo(5L << 22 | 1023L << 12);
        assertThat(Long.parseLong(generator.generateId().value())).isEqualTo(5L << 22 | 1023L << 12 | 1);
        clock.millis.set(EPOCH + 6);
        assertThat(Long.parseLong(generator.generateId().value())).isEqualTo(6L << 22 | 1023L << 12);
    }

    @Test
    void snowflakeWaitsOutAFullMillisecondAndAStepBack() throws Exception {
        ManualClock clock = new ManualClock(EPOCH + 100);
        IdempotenceIdGenerator generator = IdempotenceIdGenerator.snowflake(0, clock);
        for (int i = 0; i < 4096; i++) {
            generator.generateId();
        }
        assertThat(Long.parseLong(whileClockMoves(clock, 101, generator))).isEqualTo(101L << 22);
        clock.millis.set(EPOCH + 50);
        assertThat(Long.parseLong(whileClockMoves(clock, 102, generator))).isEqualTo(102L << 22);
    }

    private static String whileClockMoves(ManualClock clock, long to, IdempotenceIdGenerator generator)
            throws Exception {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        try {
            long readsBefore = clock.reads.get();
            Future<String> id = executor.submit(() -> generator.generateId().value());
            while (clock.reads.get() < readsBefore + 3 && !id.isDone()) {
                Thread.onSpinWait();
            }
            assertThat(id.isDone()).isFalse();
            clock.millis.set(EPOCH + to);
            return id.get();
        } finally {
            executor.shutdownNow();
        }
    }

    @Test
    void snowflakeRefusesAClockThatStaysBehind() {
        ManualClock clock = new ManualClock(EPOCH + 10_000);
        IdempotenceIdGenerator generator = IdempotenceIdGenerator.snowflake(0, clock);
        for (int i = 0; i < 4096; i++) {
            generator.generateId();
        }
        clock.millis.set(EPOCH + 4_000);
        assertThatThrownBy(generator::generateId)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("stepped back by 6001 ms");
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 1L << 41})
    void snowflakeRefusesAClockOutsideItsRange(long millis) {
        IdempotenceIdGenerator generator = IdempotenceIdGenerator.snowflake(0, new ManualClock(EPOCH + millis));
        assertThatThrownBy(generator::generateId).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void generatorsOfOneNodeShareOneSequence() {
        Set<String> seen = new java.util.HashSet<>();
        IdempotenceIdGenerator one = IdempotenceIdGenerator.snowflake(5);
        IdempotenceIdGenerator other = IdempotenceIdGenerator.snowflake(5);
        for (int i = 0; i < 5_000; i++) {
            assertThat(seen.add(one.generateId().value())).isTrue();
            assertThat(seen.add(other.generateId().value())).isTrue();
        }
    }

    @Test
    void snowflakeNeverRepeatsUnderConcurrency() throws Exception {
        IdempotenceIdGenerator generator = IdempotenceIdGenerator.snowflake(3);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        ExecutorService executor = Executors.newFixedThreadPool(8);
        try {
            Callable<Void> task = () -> {
                for (int i = 0; i < 5_000; i++) {
                    assertThat(seen.add(generator.generateId().value())).isTrue();
                }
                return null;
            };
            for (Future<Void> done :
                    executor.invokeAll(IntStream.range(0, 8).mapToObj(i -> task).toList())) {
                done.get();
            }
        } finally {
            executor.shutdownNow();
        }
        assertThat(seen).hasSize(40_000);
    }

    @Test
    void equalFieldsGiveAnEqualIdInAnyOrder() {
        BusinessFields register = IdempotenceIdGenerator.fromFields("register-phone");
        IdempotenceId id = register.with("country", "43").with("number", "1234").generateId();
        assertThat(register.with("number", "1234").with("country", "43").generateId())
                .isEqualTo(id);
        assertThat(id.value()).matches("register-phone-[A-Za-z0-9_-]{43}");
    }

    @Test
    void fieldsCannotBeShiftedIntoEachOther() {
        BusinessFields pay = IdempotenceIdGenerator.fromFields("pay");
        assertThat(pay.with("a", "bc").generateId())
                .isNotEqualTo(pay.with("ab", "c").generateId());
        assertThat(pay.with("a", "1").with("b", "").generateId())
                .isNotEqualTo(pay.with("a", "1").generateId());
        assertThat(IdempotenceIdGenerator.fromFields("refund")
                        .with("a", "1")
                        .generateId()
                        .value()
                        .substring(7))
                .isNotEqualTo(pay.with("a", "1").generateId().value().substring(4));
    }

    @Test
    void fieldsAreChecked() {
        BusinessFields pay = IdempotenceIdGenerator.fromFields("pay");
        assertThatThrownBy(pay::generateId)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("with()");
        assertThatThrownBy(() -> pay.with("", "x")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> pay.with("a", "1").with("a", "2")).hasMessageContaining("'a' is given twice");
        assertThatThrownBy(() -> IdempotenceIdGenerator.fromFields("a b")).hasMessageStartingWith("operation must be");
    }

    /** A clock the test moves; counts how often it was read. */
    private static final class ManualClock extends Clock {
        final AtomicLong millis;
        final AtomicLong reads = new AtomicLong();

        ManualClock(long millis) {
            this.millis = new AtomicLong(millis);
        }

        @Override
        public long millis() {
            reads.incrementAndGet();
            return millis.get();
        }

        @Override
        public Instant instant() {
            return Instant.ofEpochMilli(millis());
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }
    }

    /** As UTF-8 it would be a question mark, and so the value of somebody else. */
    @Test
    void halfASurrogatePairIsNoValue() {
        BusinessFields fields = IdempotenceIdGenerator.fromFields("register-phone");
        assertThatThrownBy(() -> fields.with("number", "\ud800"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("'number'");
        assertThat(fields.with("number", "\ud83d\ude00").generateId()).isNotNull();
    }
}
