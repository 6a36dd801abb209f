package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import redis.clients.jedis.Jedis;

/** Duplicates that wait for the first attempt to end, in its process and in another one, on a real Redis. */
class DuplicateWaitTest {
    private static final Duration LONG = Duration.ofMinutes(5);
    private static final IdempotencePolicy POLICY = IdempotencePolicy.defaults();

    private final IdempotentCall call =
            IdempotentCall.of(IdempotenceId.of("order-1")).withFingerprint(fingerprint(1));
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final List<Idempotence> open = new ArrayList<>();
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.startPersistent();
    }

    @AfterEach
    void stop() {
        open.forEach(Idempotence::close);
        redis.close();
    }

    private Idempotence idempotence() {
        return idempotence(10_000);
    }

    private Idempotence idempotence(int maxWaitingDuplicates) {
        Idempotence idempotence = Idempotence.builder(redis.connect())
                .listener((event, id) -> events.add(event))
                .maxWaitingDuplicates(maxWaitingDuplicates)
                .build();
        open.add(idempotence);
        return idempotence;
    }

    private static Fingerprint fingerprint(int seed) {
        byte[] bytes = new byte[Fingerprint.BYTES];
        Arrays.fill(bytes, (byte) seed);
        return Fingerprint.of(bytes);
    }

    private ClaimedExecution run(Idempotence idempotence) {
        return (ClaimedExecution) idempotence.engine().claim(call, POLICY);
    }

    private static byte[] respond() {
        return StoredResult.value(new byte[] {42});
    }

    private static Decision told(CompletableFuture<Decision> waiter) {
        return waiter.orTimeout(1, TimeUnit.MINUTES).join();
    }

    private static void assertReplays(CompletableFuture<Decision> waiter) {
        assertThat(told(waiter))
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(respond()));
    }

    private static void assertRefused(CompletableFuture<Decision> waiter, Refusal refusal) {
        assertThat(told(waiter))
                .isInstanceOfSatisfying(
                        Decision.Refuse.class,
                        refuse -> assertThat(refuse.refusal()).isEqualTo(refusal));
    }

    private long commands() {
        try (Jedis jedis = redis.jedis()) {
            return jedis.info("commandstats")
                    .lines()
                    .filter(line -> line.startsWith("cmdstat_eval"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll(".*:calls=([0-9]+),.*", "$1")))
                    .sum();
        }
    }

    @Test
    @DisplayName(
            "1,000 duplicates in the process of the first attempt cost one storage call each, and none for waiting")
    void duplicatesInTheSameProcessGetTheResult() {
        Idempotence idempotence = idempotence();
        ClaimedExecution execution = run(idempotence);
        int threads = Thread.activeCount();
        long before = commands();
        long begin = System.nanoTime();

        List<CompletableFuture<Decision>> waiters = IntStream.range(0, 1_000)
                .mapToObj(i -> Duplicates.claim(idempotence, call, POLICY, LONG))
                .toList();
        assertThat(waiters).noneMatch(CompletableFuture::isDone);
        // Those of the polls, of timeouts, and of renewals if this takes long.
        assertThat(Thread.activeCount()).isLessThan(threads + 20);
        execution.finish(Verdict.KEEP, respond());

        waiters.forEach(DuplicateWaitTest::assertReplays);
        // A script that is new to the server is sent twice. If this takes long, the lease is renewed.
        long renewals = Duration.ofNanos(System.nanoTime() - begin)
                .dividedBy(POLICY.lease().dividedBy(4));
        assertThat(commands() - before).isBetween(1_001L, 1_002L + renewals);
        assertThat(events.stream().filter(event -> event == IdempotenceEvent.REPLAYED))
                .hasSize(1_000);
    }

    @Test
    @DisplayName("1,000 duplicates in another process share one poll")
    void duplicatesInAnotherProcessShareOnePoll() {
        ClaimedExecution execution = run(idempotence());
        Idempotence other = idempotence();
        long before = commands();
        long begin = System.nanoTime();

        List<CompletableFuture<Decision>> waiters = IntStream.range(0, 1_000)
                .mapToObj(i -> Duplicates.claim(other, call, POLICY, LONG))
                .toList();
        execution.finish(Verdict.KEEP, respond());

        waiters.forEach(DuplicateWaitTest::assertReplays);
        // The duplicates, the completion, the response read once, and looks that become rarer: at last two in a second.
        long looks = 40 + 2 * (1 + Duration.ofNanos(System.nanoTime() - begin).toSeconds());
        assertThat(commands() - before).isBetween(1_000L + 3, 1_000L + looks);
    }

    @Test
    void whoWaitsForAReleasedAttemptMayAskAgainAtOnce() {
        for (boolean sameProcess : new boolean[] {true, false}) {
            Idempotence idempotence = idempotence();
            ClaimedExecution execution = run(idempotence);
            Idempotence waiting = sameProcess ? idempotence : idempotence();
            CompletableFuture<Decision> waiter = Duplicates.claim(waiting, call, POLICY, LONG);

            execution.finish(Verdict.RELEASE, ClaimResult.noResult());

            assertRefused(waiter, Refusal.IN_PROGRESS);
            assertThat(((Decision.Refuse) waiter.join()).retryAfter()).isEqualTo(FixedDecisions.SOONEST_RETRY);
        }
    }

    @ParameterizedTest
    @CsvSource({"UNKNOWN, OUTCOME_UNKNOWN", "KEEP, RESULT_UNAVAILABLE"})
    void duplicateOfAnAttemptWithoutAResultIsRefused(Verdict verdict, Refusal refusal) {
        Idempotence idempotence = idempotence();
        ClaimedExecution execution = run(idempotence);
        CompletableFuture<Decision> here = Duplicates.claim(idempotence, call, POLICY, LONG);
        CompletableFuture<Decision> there = Duplicates.claim(idempotence(), call, POLICY, LONG);

        execution.finish(verdict, ClaimResult.noResult());

        assertRefused(here, refusal);
        assertRefused(there, refusal);
    }

    /** A waiter that gives up removes nothing. */
    @Test
    void patienceEndsWithTheRefusalOfOneWhoDidNotWait() {
        Idempotence idempotence = idempotence();
        ClaimedExecution execution = run(idempotence);

        assertRefused(Duplicates.claim(idempotence, call, POLICY, Duration.ofMillis(1)), Refusal.IN_PROGRESS);
        assertRefused(Duplicates.claim(idempotence, call, POLICY, Duration.ZERO), Refusal.IN_PROGRESS);
        assertReplaysAfter(execution, idempotence);
    }

    private void assertReplaysAfter(ClaimedExecution execution, Idempotence idempotence) {
        execution.finish(Verdict.KEEP, respond());
        assertReplays(Duplicates.claim(idempotence, call, POLICY, LONG));
    }

    @Test
    void oneTooManyIsNotKeptWaiting() {
        Idempotence idempotence = idempotence(2);
        ClaimedExecution execution = run(idempotence);
        CompletableFuture<Decision> first = Duplicates.claim(idempotence, call, POLICY, LONG);
        CompletableFuture<Decision> second = Duplicates.claim(idempotence, call, POLICY, LONG);

        assertThat(Duplicates.claim(idempotence, call, POLICY, LONG)).isDone();

        first.cancel(false);
        CompletableFuture<Decision> third = Duplicates.claim(idempotence, call, POLICY, LONG);
        assertThat(third).isNotDone();
        execution.finish(Verdict.KEEP, respond());
        assertReplays(second);
        assertReplays(third);
    }

    @Test
    @DisplayName("P5: a waiting duplicate does not get the response of another request that has its ID after a delete")
    void duplicateNeverGetsAnotherRequestsResponse() {
        FaultyStorage storage = new FaultyStorage(redis.connect());
        HeldLooks looks = new HeldLooks(storage);
        Idempotence idempotence = Idempotence.over(storage);
        open.add(idempotence);
        // Its next renewal shows that its record is another one's by now.
        idempotence
                .engine()
                .claim(
                        call,
                        IdempotencePolicy.builder().lease(Duration.ofSeconds(4)).build());
        CompletableFuture<Decision> waiter = Duplicates.claim(idempotence, call, POLICY, LONG);
        IdempotentCall other = IdempotentCall.of(call.id()).withFingerprint(fingerprint(2));
        ClaimedExecution execution = looks.during(() -> {
            storage.delete(StorageKey.of("default", "", "", call.id()));
            return (ClaimedExecution) idempotence.engine().claim(other, POLICY);
        });

        execution.finish(Verdict.KEEP, respond());

        assertRefused(waiter, Refusal.KEY_REUSED);
    }

    @Test
    @DisplayName("T22: a waiting duplicate does not get a response that is not recorded yet")
    void aResponseThatIsNotRecordedIsNotPassedOn() {
        Idempotence idempotence = idempotence();
        ClaimedExecution execution = run(idempotence);
        CompletableFuture<Decision> waiter = Duplicates.claim(idempotence, call, POLICY, LONG);
        redis.kill();

        execution.finish(Verdict.KEEP, respond());
        assertThat(events).contains(IdempotenceEvent.STORAGE_ERROR);
        assertThat(waiter).isNotDone();

        redis.restart();
        assertReplays(waiter);
    }

    @Test
    void duplicateOfAnotherProcessIsRefusedWhenTheStorageFails() {
        run(idempotence());
        CompletableFuture<Decision> waiter = Duplicates.claim(idempotence(), call, POLICY, LONG);

        redis.kill();

        assertRefused(waiter, Refusal.STORAGE_UNAVAILABLE);
        // It is published once the wait has ended.
        await().until(() -> events.contains(IdempotenceEvent.STORAGE_ERROR));
    }

    @Test
    void closingSendsEverybodyAway() {
        Idempotence idempotence = idempotence();
        run(idempotence);
        CompletableFuture<Decision> waiter = Duplicates.claim(idempotence, call, POLICY, LONG);

        idempotence.close();

        assertThat(waiter).isDone();
        assertRefused(waiter, Refusal.STORAGE_UNAVAILABLE);
    }

    @Test
    void whoComesWhileItIsClosedIsSentAwayToo() {
        Idempotence idempotence = idempotence();
        run(idempotence());
        CompletableFuture<CompletableFuture<Decision>> second = Duplicates.claim(idempotence, call, POLICY, LONG)
                .thenApply(sentAway -> Duplicates.claim(idempotence, call, POLICY, LONG));

        idempotence.close();

        assertThat(second).isDone();
        assertThat(second.join()).isDone();
    }

    @Test
    void callersThatComeAndGoLeaveNoPollsBehind() {
        run(idempotence());
        FaultyStorage storage = new FaultyStorage(redis.connect());
        Idempotence other = Idempotence.over(storage);
        open.add(other);
        for (int i = 0; i < 100; i++) {
            Duplicates.claim(other, call, POLICY, LONG).cancel(false);
        }

        assertRefused(Duplicates.claim(other, call, POLICY, Duration.ofSeconds(3)), Refusal.IN_PROGRESS);

        // Each interval is a fifth longer than the one before, up to 500 ms: after 20, 44, 73, 108, 149 ms and so on,
        // 18 times in three seconds, and a few times more on a slow machine. Each of 100 callers would do the same.
        assertThat(storage.count(FaultyStorage.Call.FIND)).isBetween(1L, 40L);
    }

    @Test
    @DisplayName("each poll interval is a fifth longer: no duplicate waits twice as long as the first attempt runs")
    void looksComeOften() {
        run(idempotence());
        List<Long> looks = new CopyOnWriteArrayList<>();
        FaultyStorage storage = new FaultyStorage(redis.connect()).before((what, key) -> {
            if (what == FaultyStorage.Call.FIND) {
                looks.add(System.nanoTime());
            }
        });
        Idempotence other = Idempotence.over(storage);
        open.add(other);
        long start = System.nanoTime();
        Duplicates.claim(other, call, POLICY, LONG);
        await().until(() -> looks.size() >= 6);

        // One of them at least comes in time, however slow the machine is; with doubled intervals none would.
        assertThat(IntStream.range(1, 6).mapToDouble(i -> (looks.get(i) - start) / (double) (looks.get(i - 1) - start)))
                .anyMatch(later -> later < 1.5);
    }

    @Test
    void duplicatesThatHaveLeftAreNotPolledFor() {
        Map<StorageKey, AtomicInteger> looks = new ConcurrentHashMap<>();
        FaultyStorage storage = new FaultyStorage(redis.connect()).before((what, key) -> {
            if (what == FaultyStorage.Call.FIND) {
                looks.computeIfAbsent(key, one -> new AtomicInteger()).incrementAndGet();
            }
        });
        IdempotentCall still = IdempotentCall.of(IdempotenceId.of("order-2")).withFingerprint(fingerprint(1));
        StorageKey left = StorageKey.of("default", "", "", call.id());
        StorageKey stays = StorageKey.of("default", "", "", still.id());
        Idempotence first = idempotence();
        run(first);
        first.engine().claim(still, POLICY);
        Idempotence other = Idempotence.over(storage);
        open.add(other);
        CompletableFuture<Decision> leaving = Duplicates.claim(other, call, POLICY, LONG);
        await().until(() -> looks.containsKey(left));

        leaving.cancel(false);
        Duplicates.claim(other, still, POLICY, LONG);
        int before = looks.get(left).get();
        // After 20, 44, 73, 108 and 149 ms: an execution that was still polled would have been polled twice.
        await().until(() -> looks.containsKey(stays) && looks.get(stays).get() >= 5);

        // One may have been under way.
        assertThat(looks.get(left).get()).isLessThanOrEqualTo(before + 1);
    }

    @Test
    void whoIsWillingToWaitForEverWaits() {
        Idempotence idempotence = idempotence();
        ClaimedExecution execution = run(idempotence);
        CompletableFuture<Decision> waiter =
                Duplicates.claim(idempotence, call, POLICY, ChronoUnit.FOREVER.getDuration());
        execution.finish(Verdict.KEEP, respond());
        assertReplays(waiter);
    }

    @Test
    @DisplayName("P4, T14: a waiting duplicate does not get the response of a late owner, which is not recorded")
    void duplicateNeverGetsTheResponseOfALateOwner() {
        IdempotencePolicy reExecute =
                IdempotencePolicy.builder().onAbandoned(OnAbandoned.RE_EXECUTE).build();
        MovingClock clock = new MovingClock();
        IdempotenceStorage memory = IdempotenceStorage.inMemory(100, clock);
        FaultyStorage cutOff = new FaultyStorage(memory).withoutRenewals();
        Idempotence first = Idempotence.over(cutOff);
        open.add(first);
        ClaimedExecution late = (ClaimedExecution) first.engine().claim(call, reExecute);
        CompletableFuture<Decision> waiter = Duplicates.claim(first, call, POLICY, LONG);
        assertThat(waiter).isNotDone();
        Idempotence second = Idempotence.over(memory);
        open.add(second);
        clock.advance(reExecute.lease());
        ClaimedExecution heir = (ClaimedExecution) second.engine().claim(call, reExecute);

        late.finish(Verdict.KEEP, StoredResult.value(new byte[] {1}));
        assertThat(waiter).isNotDone();
        heir.finish(Verdict.KEEP, respond());

        assertReplays(waiter);
    }

    @Test
    void anImpossibleNumberOfWaitersIsRefused() {
        try (RedisIdempotenceStorage storage = redis.connect()) {
            Idempotence.Builder builder = Idempotence.builder(storage);
            assertThatThrownBy(() -> builder.maxWaitingDuplicates(-1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("maxWaitingDuplicates must be 0 to 1000000, got -1");
        }
    }
}
