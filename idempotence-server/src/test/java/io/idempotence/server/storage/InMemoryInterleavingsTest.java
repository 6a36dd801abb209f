package io.idempotence.server.storage;

import io.idempotence.IdempotenceId;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Arrays;
import org.jetbrains.lincheck.LincheckAssertionError;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Whatever the threads do at once, the answers are those of some order of the calls (Lincheck). Two records fit in. */
@Param(name = "id", gen = IntGen.class, conf = "0:2")
@Param(name = "owner", gen = IntGen.class, conf = "1:3")
@Param(name = "fence", gen = IntGen.class, conf = "1:2")
public @Tag("interleavings") class InMemoryInterleavingsTest {
    private static final Duration LONG = Duration.ofMinutes(10);

    private final IdempotenceStorage storage =
            IdempotenceStorage.inMemory(2, Clock.fixed(Instant.EPOCH, ZoneOffset.UTC));

    @Operation
    public String claim(int id, int owner) {
        try {
            ClaimResult result =
                    storage.claim(new ClaimRequest(key(id), Fingerprint.NONE, owner(owner), LONG, LONG, false));
            return result instanceof ClaimResult.Completed completed
                    ? "completed " + Arrays.toString(completed.result())
                    : result.toString();
        } catch (StorageUnavailableException e) {
            return "full";
        }
    }

    @Operation
    public String complete(int id, int owner, int fence) {
        return said(id, owner, fence, true);
    }

    @Operation
    public String release(int id, int owner, int fence) {
        return said(id, owner, fence, false);
    }

    @Operation
    public boolean delete(int id) {
        return storage.delete(key(id));
    }

    private String said(int id, int owner, int fence, boolean complete) {
        Claim claim = new Claim(key(id), Fingerprint.NONE, owner(owner), fence);
        try {
            WriteResult result =
                    complete ? storage.complete(claim, new byte[] {(byte) owner}, LONG) : storage.release(claim, LONG);
            return result instanceof WriteResult.Fenced fenced
                    ? "fenced " + Arrays.toString(fenced.result())
                    : result.toString();
        } catch (StorageUnavailableException e) {
            return "full";
        }
    }

    private static StorageKey key(int id) {
        return StorageKey.of("a", "", "", IdempotenceId.of("id-" + id));
    }

    private static Owner owner(int owner) {
        return new Owner(1, owner);
    }

    @Test
    void everyInterleavingIsAnOrder() throws LincheckAssertionError {
        new StressOptions()
                .threads(3)
                .actorsPerThread(4)
                .iterations(30)
                .invocationsPerIteration(300)
                .check(getClass());
    }
}
