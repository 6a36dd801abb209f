package io.idempotence.benchmarks.jmh;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.Decision;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.Verdict;
import io.idempotence.server.storage.IdempotenceStorage;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** The steps of the server half: the state machine over the storage in memory, and the header. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ServerBenchmark {
    private static final String ID = "0b9d6c1e-5a3f-4a27-9c57-2f0c7e0d8a11";
    /** As large as a 201 with a Content-Type and a Location; the first byte says that it is a response. */
    private final byte[] result = ("\1" + "x".repeat(72)).getBytes(StandardCharsets.US_ASCII);

    private final IdempotencyKeyHeader header = IdempotencyKeyHeader.standard();
    private final List<String> bare = List.of(ID);
    private final List<String> quoted = List.of('"' + ID + '"');
    // Short, so that the memory holds no more than the records of a moment; clearing them away is part of the cost.
    private final IdempotencePolicy policy = IdempotencePolicy.builder()
            .lease(Duration.ofMillis(500))
            .retention(Duration.ofMillis(500))
            .build();
    private final Idempotence idempotence =
            Idempotence.over(IdempotenceStorage.inMemory(10_000_000, Clock.systemUTC()));
    private final IdempotentCall known = call(ID);

    /** The call that is replayed is done once. */
    public ServerBenchmark() {
        run(known, IdempotencePolicy.defaults());
    }

    /** State of one thread. */
    @State(Scope.Thread)
    public static class Counter {
        private final long thread = Thread.currentThread().getId();
        private long next;

        String id() {
            return "0b9d6c1e-5a3f-4a27-" + (1_000_000_000_000_000_000L + (thread << 40) + next++);
        }
    }

    /** Stops the threads. */
    @TearDown
    public void close() {
        idempotence.close();
    }

    private static IdempotentCall call(String id) {
        return IdempotentCall.of(new IdempotenceId(id));
    }

    private Optional<Decision> run(IdempotentCall call, IdempotencePolicy policy) {
        Decision.Run run = (Decision.Run) idempotence.engine().claim(call, policy);
        return run.execution().finish(Verdict.KEEP, result);
    }

    /** A first request: claim and completion. */
    @Benchmark
    public Optional<Decision> claimAndComplete(Counter counter) {
        return run(call(counter.id()), policy);
    }

    /** A later request: the claim finds the response. */
    @Benchmark
    public Decision replay() {
        return idempotence.engine().claim(known, policy);
    }

    /** The header as most clients write it. */
    @Benchmark
    public Optional<IdempotenceId> parseBare() {
        return header.parse(bare);
    }

    /** The header as a Structured Field string. */
    @Benchmark
    public Optional<IdempotenceId> parseQuoted() {
        return header.parse(quoted);
    }
}
