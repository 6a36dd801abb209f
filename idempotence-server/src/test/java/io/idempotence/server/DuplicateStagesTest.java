package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The application's stages behind the result of a duplicate: they may block, and hold up nobody else. */
class DuplicateStagesTest {
    private static final Duration LONG = Duration.ofMinutes(1);
    private static final Duration SHORT = Duration.ofMillis(20);
    private static final Duration SOON = Duration.ofMinutes(1);

    private final IdempotenceStorage storage = IdempotenceStorage.inMemory();
    private final ThreadLimit limit = new ThreadLimit();
    private final Idempotence idempotence =
            UnusualParts.withThreads(storage, IdempotencePolicy.defaults(), (event, id) -> {}, limit);
    /** Another process. */
    private final Idempotence other = Idempotence.over(storage);

    private final CompletableFuture<String> charging = new CompletableFuture<>();
    private final CountDownLatch stagesMayEnd = new CountDownLatch(1);

    @AfterEach
    void stop() {
        stagesMayEnd.countDown();
        charging.complete("charged");
        idempotence.close();
        other.close();
    }

    private static IdempotentCall order(String id) {
        return IdempotentCall.of("charge", IdempotenceId.of(id));
    }

    private CompletableFuture<String> charge(Idempotence by, String id, Duration maxWait) {
        return by.executeAsync(
                order(id), IdempotencePolicy.defaults(), maxWait, ResultCodec.text(), execution -> charging);
    }

    private Refusal refusalAfter(Duration maxWait, String id) {
        return refusalOf(() -> idempotence.execute(
                order(id), IdempotencePolicy.defaults(), maxWait, ResultCodec.text(), execution -> "another run"));
    }

    /** A duplicate with a stage that blocks, unless it was refused at once. Completed when the stage has begun. */
    private CompletableFuture<Void> blockedDuplicate(String id, Duration maxWait) {
        Thread caller = Thread.currentThread();
        CompletableFuture<Void> began = new CompletableFuture<>();
        charge(idempotence, id, maxWait).whenComplete((result, refusal) -> {
            began.complete(null);
            if (Thread.currentThread() == caller) {
                return;
            }
            try {
                stagesMayEnd.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        return began;
    }

    @Test
    @DisplayName("P7: a stage of a refused duplicate may wait for the same ID once more, and that wait ends")
    void aStageMayWaitOnceMore() {
        charge(idempotence, "order-1", Duration.ZERO);
        CompletableFuture<Refusal> again =
                charge(idempotence, "order-1", SHORT).handle((result, refusal) -> refusalAfter(SHORT, "order-1"));
        assertThat(again).succeedsWithin(SOON).isEqualTo(Refusal.IN_PROGRESS);
    }

    @Test
    @DisplayName("P7: waits end in time although stages of other duplicates block")
    void waitsEndInTime() {
        charge(idempotence, "order-1", Duration.ZERO);
        List<CompletableFuture<Void>> stages = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            stages.add(blockedDuplicate("order-1", SHORT));
        }
        assertThat(stages).allSatisfy(began -> assertThat(began).succeedsWithin(SOON));
        CompletableFuture<Refusal> refused = CompletableFuture.supplyAsync(() -> refusalAfter(SHORT, "order-1"));
        assertThat(refused).succeedsWithin(SOON).isEqualTo(Refusal.IN_PROGRESS);
    }

    @Test
    @DisplayName("P7: results from other processes arrive although stages of other duplicates block")
    void resultsFromOtherProcessesArrive() {
        charge(other, "order-1", Duration.ZERO);
        CompletableFuture<Void> began = blockedDuplicate("order-1", LONG);
        CompletableFuture<String> second = charge(idempotence, "order-1", LONG);
        charging.complete("charged");
        assertThat(began).succeedsWithin(SOON);
        assertThat(second).succeedsWithin(SOON).isEqualTo("charged");
    }

    @Test
    @DisplayName("the first caller gets its result although stages of duplicates block")
    void theFirstCallerGetsItsResult() {
        CompletableFuture<String> first = charge(idempotence, "order-1", Duration.ZERO);
        CompletableFuture<Void> began = blockedDuplicate("order-1", LONG);
        CompletableFuture.runAsync(() -> charging.complete("charged"));
        assertThat(first).succeedsWithin(SOON).isEqualTo("charged");
        assertThat(began).succeedsWithin(SOON);
    }

    @Test
    @DisplayName("a duplicate gets its result although no thread can be started for its stages")
    void withoutAThreadForItsStages() {
        limit.reachedFor("idempotence-results"::equals);
        charge(idempotence, "order-1", Duration.ZERO);
        CompletableFuture<String> duplicate = charge(idempotence, "order-1", LONG);
        charging.complete("charged");
        assertThat(duplicate).succeedsWithin(SOON).isEqualTo("charged");
    }

    @Test
    @DisplayName("P7: duplicates that wait when the instance closes are refused, also behind stages that block")
    void closingEndsTheWait() {
        charge(idempotence, "order-1", Duration.ZERO);
        List<CompletableFuture<String>> waiting = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            waiting.add(charge(idempotence, "order-1", LONG));
        }
        idempotence.close();
        assertThat(waiting)
                .allSatisfy(duplicate -> assertThatThrownBy(() -> duplicate.get(SOON.toMillis(), TimeUnit.MILLISECONDS))
                        .hasCauseInstanceOf(ExecutionRefusedException.class));
    }
}
