package io.idempotence.server;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.idempotence.server.HistoryStep.Act;
import io.idempotence.server.HistoryStep.Rule;
import io.idempotence.server.HistoryStep.Wire;
import io.idempotence.server.jdbc.Databases;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.redis.ServerTime;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;
import org.slf4j.LoggerFactory;

/**
 * Random histories of two processes that serve attempts at several IDs, over a storage that loses calls and replies. Each attempt, also one
 * that waited, gets what the state table says of the record that it meets. Each run of an ID has its own fence. Two runs overlap only if a
 * lease ended between their starts. A recorded success is never changed, and nothing runs after it.
 */
class IdempotencePropertiesTest {
    private static EmbeddedRedis redis;
    private static RedisIdempotenceStorage inRedis;
    private static JdbcIdempotenceStorage inDatabase;

    @BeforeContainer
    static void start() {
        redis = EmbeddedRedis.start();
        inRedis = redis.connect();
        inDatabase = Databases.POSTGRESQL.storage().createIfMissing().build();
    }

    @AfterContainer
    static void stop() {
        inDatabase.close();
        inRedis.close();
        redis.close();
    }

    @Provide
    Arbitrary<List<HistoryStep>> histories() {
        Arbitrary<Act> acts = Arbitraries.frequency(
                Tuple.of(11, Act.CLAIM),
                Tuple.of(2, Act.SUCCEED),
                Tuple.of(1, Act.SUCCEED_WITHOUT_RESULT),
                Tuple.of(4, Act.FAIL),
                Tuple.of(1, Act.END_UNCERTAIN),
                Tuple.of(1, Act.CRASH),
                Tuple.of(4, Act.LEASES_END),
                Tuple.of(1, Act.APPLIED),
                Tuple.of(1, Act.NOT_APPLIED),
                Tuple.of(2, Act.PAUSE));
        Arbitrary<Rule> rules = Arbitraries.frequency(
                Tuple.of(2, Rule.REFUSE),
                Tuple.of(2, Rule.RE_EXECUTE),
                Tuple.of(1, Rule.YES),
                Tuple.of(3, Rule.NO),
                Tuple.of(1, Rule.UNKNOWN),
                Tuple.of(1, Rule.THROWS));
        Arbitrary<Wire> wires = Arbitraries.frequency(
                Tuple.of(8, Wire.WORKS),
                Tuple.of(1, Wire.LOSES_CALLS),
                Tuple.of(1, Wire.LOSES_REPLIES),
                Tuple.of(2, Wire.LOSES_FIRST_REPLY),
                Tuple.of(1, Wire.LOSES_SECOND_REPLY));
        return Combinators.combine(
                        acts,
                        Arbitraries.integers().between(0, 1),
                        Arbitraries.frequency(Tuple.of(5, 0), Tuple.of(2, 1), Tuple.of(1, 2)),
                        Arbitraries.integers().between(0, 3),
                        rules,
                        Arbitraries.of(true, false),
                        wires)
                .as(HistoryStep::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(40);
    }

    @Property(tries = 600)
    void noHistoryRunsTwiceWhatMayRunOnce(@ForAll("histories") List<HistoryStep> history) {
        MovingClock clock = new MovingClock();
        play(history, IdempotenceStorage.inMemory(1_000, clock), clock::advance);
    }

    @Property(tries = 40)
    void noHistoryInRedisRunsTwiceWhatMayRunOnce(@ForAll("histories") List<HistoryStep> history) {
        play(history, inRedis, duration -> ServerTime.letPass(redis, duration));
    }

    @Property(tries = 60)
    void noHistoryInADatabaseRunsTwiceWhatMayRunOnce(@ForAll("histories") List<HistoryStep> history) {
        play(history, inDatabase, Databases.POSTGRESQL::letPass);
    }

    private static void play(List<HistoryStep> history, IdempotenceStorage storage, Consumer<Duration> letPass) {
        Logger log = (Logger) LoggerFactory.getLogger(Idempotence.class);
        Level level = log.getLevel();
        log.setLevel(Level.OFF); // thousands of lost calls
        try {
            new RandomHistory(storage, letPass).play(history);
        } finally {
            log.setLevel(level);
        }
    }
}
