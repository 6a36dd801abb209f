package io.idempotence.benchmarks.jmh;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Decision;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.storage.IdempotenceStorage;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
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
    private final Idempotence idempotence;
    private final IdempotentCall known = call(ID);

    /** Over a storage that is never full. */
    public ServerBenchmark() {
        this(IdempotenceStorage.inMemory(Integer.MAX_VALUE, Long.MAX_VALUE, Clock.systemUTC()));
    }

    /** The call that is replayed is done once. */
    ServerBenchmark(IdempotenceStorage storage) {
        idempotence = Idempotence.over(storage);
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

    private ClaimedExecution run(IdempotentCall call, IdempotencePolicy policy) {
        Decision decision = idempotence.engine().claim(call, policy);
        if (!(decision instanceof ClaimedExecution execution)) {
            throw new IllegalStateException("a new ID was not claimed: " + decision);
        }
        execution.finish(Verdict.KEEP, result).ifPresent(other -> {
            throw new IllegalStateException("the claim was lost before its completion: " + other);
        });
        return execution;
    }

    /** A first request: claim and completion. */
    @Benchmark
    public ClaimedExecution claimAndComplete(Counter counter) {
        return run(call(counter.id()), policy);
    }

    /** A later request: the claim finds the response. */
    @Benchmark
    public Decision.Replay replay() {
        Decision decision = idempotence.engine().claim(known, policy);
        if (decision instanceof Decision.Replay replay) {
            return replay;
        }
        throw new IllegalStateException("the known ID was not replayed: " + decision);
    }

    /** The header as most clients write it. */
    @Benchmark
    public IdempotenceId parseBare() {
        return header.parse(bare).orElseThrow();
    }

    /** The header as a Structured Field string. */
    @Benchmark
    public IdempotenceId parseQuoted() {
        return header.parse(quoted).orElseThrow();
    }
}
