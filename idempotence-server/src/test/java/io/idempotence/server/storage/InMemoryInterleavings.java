package io.idempotence.server.storage;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jetbrains.lincheck.LincheckAssertionError;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.api.Test;

/** Concurrent calls (Lincheck): their replies are those of some order of the calls. */
@Param(name = "id", gen = IntGen.class, conf = "0:2")
@Param(name = "owner", gen = IntGen.class, conf = "1:3")
@Param(name = "fence", gen = IntGen.class, conf = "1:3")
public abstract class InMemoryInterleavings {
    static final Duration LEASE = Duration.ofMinutes(1);
    private static final Duration RETENTION = Duration.ofMinutes(3);

    private static final List<StorageKey> KEYS = IntStream.range(0, 3)
            .mapToObj(id -> StorageKey.of("a", "", "", IdempotenceId.of("id-" + id)))
            .toList();

    final MovingClock clock = new MovingClock();
    private final IdempotenceStorage storage;

    /** Lets another thread go on in the middle of each step. */
    InMemoryInterleavings(int room) {
        storage = IdempotenceStorage.inMemory(room, clock);
        clock.whenAsked(Thread::yield);
    }

    @Operation
    public String claim(int id, int owner) {
        // The third one may take over.
        return respond(() -> {
            ClaimResult result = storage.claim(new ClaimRequest(
                    KEYS.get(id), Fingerprint.NONE, new Owner(1, owner), LEASE, RETENTION, owner == 3));
            return result instanceof ClaimResult.Completed completed
                    ? "completed " + Arrays.toString(completed.result())
                    : result.toString();
        });
    }

    @Operation
    public String complete(int id, int owner, int fence) {
        return respond(() -> said(storage.complete(claimOf(id, owner, fence), new byte[] {(byte) owner}, RETENTION)));
    }

    @Operation
    public String release(int id, int owner, int fence) {
        return respond(() -> said(storage.release(claimOf(id, owner, fence), RETENTION)));
    }

    @Operation
    public String renew(int id, int owner, int fence) {
        return respond(() -> said(storage.renew(claimOf(id, owner, fence), LEASE)));
    }

    @Operation
    public String find(int id) {
        return storage.find(KEYS.get(id)).map(IdempotenceRecord::toString).orElse("none");
    }

    @Operation
    public boolean resolve(int id, int fence) {
        return storage.resolve(KEYS.get(id), fence, Resolution.APPLIED, RETENTION);
    }

    @Operation
    public boolean delete(int id) {
        return storage.delete(KEYS.get(id));
    }

    private static Claim claimOf(int id, int owner, int fence) {
        return new Claim(KEYS.get(id), Fingerprint.NONE, new Owner(1, owner), fence);
    }

    private static String said(WriteResult result) {
        return result instanceof WriteResult.Fenced fenced
                ? "fenced " + fenced.fence() + " " + Arrays.toString(fenced.result())
                : result.toString();
    }

    private static String respond(Supplier<String> call) {
        try {
            return call.get();
        } catch (StorageUnavailableException e) {
            return "full";
        }
    }

    @Test
    void everyInterleavingIsAnOrder() throws LincheckAssertionError {
        new StressOptions()
                .threads(3)
                .actorsPerThread(4)
                .iterations(24)
                .invocationsPerIteration(400)
                .check(getClass());
    }
}
