package io.idempotence.benchmarks.jmh;

import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Clock;
import org.junit.jupiter.api.Test;

/** Tests that a step which did something else is never measured as a fast one. */
class ServerBenchmarkTest {
    private static final Clock CLOCK = Clock.systemUTC();

    @Test
    void aRefusedClaimFailsTheBenchmark() {
        ServerBenchmark benchmark = new ServerBenchmark(IdempotenceStorage.inMemory(1, CLOCK));

        assertThatIllegalStateException()
                .isThrownBy(() -> benchmark.claimAndComplete(new ServerBenchmark.Counter()))
                .withMessageContaining("STORAGE_UNAVAILABLE");
    }

    @Test
    void aReplayThatFindsNoResponseFailsTheBenchmark() {
        IdempotenceStorage storage = IdempotenceStorage.inMemory(1, CLOCK);
        ServerBenchmark benchmark = new ServerBenchmark(storage);
        storage.list("default").toList().forEach(record -> storage.delete(record.key()));

        assertThatIllegalStateException()
                .isThrownBy(benchmark::replay)
                .withMessageContaining("the known ID was not replayed: " + ClaimedExecution.class.getName());
    }
}
