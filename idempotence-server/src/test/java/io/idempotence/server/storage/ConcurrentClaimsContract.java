package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** P2: of claims that are made at once, one runs. */
interface ConcurrentClaimsContract extends StorageUnderTest {
    @Test
    default void ofAHundredConcurrentClaimsExactlyOneRuns() throws Exception {
        List<ClaimResult> results = AtOnce.run(100, () -> storage().claim(request(newOwner(), LONG)));

        assertThat(results).filteredOn(ClaimResult.Claimed.class::isInstance).hasSize(1);
        assertThat(results).filteredOn(ClaimResult.InProgress.class::isInstance).hasSize(99);
    }

    /** A claim is won by the storage's reply only. */
    @Test
    default void ofManyConcurrentTakeOversExactlyOneRuns() throws Exception {
        claim(SHORT);
        passTime(SHORT);

        List<ClaimResult> results = AtOnce.run(50, () -> storage().claim(takeOver(newOwner(), LONG)));

        assertThat(results).filteredOn(ClaimResult.Claimed.class::isInstance).hasSize(1);
        assertState(State.IN_PROGRESS, 2);
    }

    /** The invariant of the protocol: executions per ID are at most 1 + take-overs + releases, one at a time. */
    @Test
    default void atMostOneLiveClaimWhateverTheInterleaving() throws Exception {
        int ids = 4;
        StorageKey[] keys = new StorageKey[ids];
        AtomicInteger[] running = new AtomicInteger[ids];
        AtomicInteger[] executions = new AtomicInteger[ids];
        AtomicInteger[] releases = new AtomicInteger[ids];
        AtomicLong[] highestFence = new AtomicLong[ids];
        for (int i = 0; i < ids; i++) {
            keys[i] = newKey();
            running[i] = new AtomicInteger();
            executions[i] = new AtomicInteger();
            releases[i] = new AtomicInteger();
            highestFence[i] = new AtomicLong();
        }
        AtOnce.run(8, () -> {
            ThreadLocalRandom random = ThreadLocalRandom.current();
            for (int round = 0; round < 150; round++) {
                int i = random.nextInt(ids);
                ClaimRequest request = new ClaimRequest(keys[i], PAY, newOwner(), LONG, RETENTION, true);
                if (!(storage().claim(request) instanceof ClaimResult.Claimed claimed)) {
                    continue;
                }
                assertThat(running[i].incrementAndGet()).as("claims at once").isEqualTo(1);
                executions[i].incrementAndGet();
                long fence = claimed.claim().fence();
                assertThat(highestFence[i].getAndSet(fence)).isLessThan(fence);
                if (random.nextBoolean()) {
                    assertThat(storage().claim(request)).isEqualTo(claimed);
                }
                if (random.nextBoolean()) {
                    assertThat(storage().renew(claimed.claim(), LONG)).isEqualTo(new WriteResult.Done());
                }
                running[i].decrementAndGet();
                if (random.nextInt(100) < 97) {
                    releases[i].incrementAndGet();
                    assertThat(storage().release(claimed.claim(), RETENTION)).isEqualTo(new WriteResult.Done());
                } else {
                    assertThat(storage().complete(claimed.claim(), RESULT, RETENTION))
                            .isEqualTo(new WriteResult.Done());
                }
            }
            return null;
        });

        for (int i = 0; i < ids; i++) {
            assertThat(executions[i].get()).isLessThanOrEqualTo(1 + releases[i].get());
        }
    }
}
