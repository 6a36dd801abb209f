package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** P2: of claims that are made at once, one runs. */
interface ConcurrentClaimsContract extends StorageUnderTest {
    @Test
    default void ofAHundredConcurrentClaimsExactlyOneRuns() throws Exception {
        List<Callable<ClaimResult>> attempts = new ArrayList<>();
        CountDownLatch start = new CountDownLatch(1);
        for (int i = 0; i < 100; i++) {
            attempts.add(() -> {
                start.await();
                return storage().claim(request(newOwner(), LONG));
            });
        }

        List<ClaimResult> results = runAll(100, attempts, start);

        assertThat(results).filteredOn(ClaimResult.Claimed.class::isInstance).hasSize(1);
        assertThat(results).filteredOn(ClaimResult.InProgress.class::isInstance).hasSize(99);
    }

    /** A claim is won by the storage's reply only. */
    @Test
    default void ofManyConcurrentTakeOversExactlyOneRuns() throws Exception {
        claim(SHORT);
        passTime(SHORT);
        List<Callable<ClaimResult>> attempts = new ArrayList<>();
        CountDownLatch start = new CountDownLatch(1);
        for (int i = 0; i < 50; i++) {
            attempts.add(() -> {
                start.await();
                return storage().claim(takeOver(newOwner(), LONG));
            });
        }

        List<ClaimResult> results = runAll(50, attempts, start);

        assertThat(results).filteredOn(ClaimResult.Claimed.class::isInstance).hasSize(1);
        assertState(RecordState.IN_PROGRESS, 2);
    }

    /** The invariant of the protocol: executions per ID are at most 1 + take-overs + releases, one at a time. */
    @Test
    default void atMostOneLiveClaimWhateverTheInterleaving() throws Exception {
        int threads = 8;
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
        CountDownLatch start = new CountDownLatch(1);
        List<Callable<Integer>> workers = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            workers.add(() -> {
                start.await();
                ThreadLocalRandom random = ThreadLocalRandom.current();
                for (int round = 0; round < 150; round++) {
                    int i = random.nextInt(ids);
                    ClaimRequest request = new ClaimRequest(keys[i], PAY, newOwner(), LONG, RETENTION, true);
                    if (!(storage().claim(request) instanceof ClaimResult.Claimed claimed)) {
                        continue;
                    }
                    assertThat(running[i].incrementAndGet())
                            .as("claims at once")
                            .isEqualTo(1);
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
                        assertThat(storage().release(claimed.claim(), RETENTION))
                                .isEqualTo(new WriteResult.Done());
                    } else {
                        assertThat(storage().complete(claimed.claim(), RESULT, RETENTION))
                                .isEqualTo(new WriteResult.Done());
                    }
                }
                return 0;
            });
        }

        runAll(threads, workers, start);

        for (int i = 0; i < ids; i++) {
            assertThat(executions[i].get()).isLessThanOrEqualTo(1 + releases[i].get());
        }
    }

    private static <T> List<T> runAll(int threads, List<Callable<T>> tasks, CountDownLatch start) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<T>> futures = new ArrayList<>();
            tasks.forEach(task -> futures.add(pool.submit(task)));
            start.countDown();
            List<T> results = new ArrayList<>();
            for (Future<T> future : futures) {
                results.add(future.get());
            }
            return results;
        } finally {
            pool.shutdownNow();
        }
    }
}
