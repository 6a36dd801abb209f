package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.github.resilience4j.retry.Retry;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope.Work;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

class IdempotenceScopeTest {
    private static final IdempotenceId A = IdempotenceId.of("a");
    private static final IdempotenceId B = IdempotenceId.of("b");
    private static final IdempotenceClientConfig CONFIG = IdempotenceClientConfig.defaults();

    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceScopeTest.class);

    private static IdempotenceId idFor(String call) {
        return idFor(call, () -> {
            throw new AssertionError("the scope has an ID");
        });
    }

    private static IdempotenceId idFor(String call, Supplier<IdempotenceId> usual) {
        return begin(call, usual).id();
    }

    private static ScopeHistory.Call begin(String call, Supplier<IdempotenceId> usual) {
        return CallScope.current().begin(call, since -> {}, null, usual, ScopeHistory.ofOneCall());
    }

    private static @Nullable IdempotenceId idOfACall() {
        ClientOperation operation = new ClientOperation("orders", "x", "x", CONFIG, null, LOG);
        CallIdentity identity =
                new CallIdentity(operation, operation::method, CallerContext.current(), ScopeHistory.ofOneCall());
        identity.decide("POST", List.of(), "x", () -> "/x", () -> null);
        return identity.id();
    }

    @Test
    void innerScopeHoldsUntilItsExit() {
        IdempotenceScope.with(A, () -> {
            IdempotenceScope.with(B, () -> assertThat(idFor("x")).isEqualTo(B));
            assertThat(idFor("y")).isEqualTo(A);
        });
        assertThat(CallScope.current()).isNull();
    }

    @Test
    void failureLeavesNoScopeBehind() {
        assertThatThrownBy(() -> IdempotenceScope.with(A, () -> {
                    throw new IOException("x");
                }))
                .isInstanceOf(IOException.class);
        assertThat(CallScope.current()).isNull();
    }

    @Test
    void sameCallKeepsTheIdAnotherOneIsRefused() {
        IdempotenceScope.with(A, () -> {
            assertThat(idFor("x")).isEqualTo(A);
            assertThat(idFor("x")).isEqualTo(A);
            assertThatThrownBy(() -> idFor("y"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("taken by x");
        });
    }

    @Test
    void outsideHidesTheScope() {
        IdempotenceScope.with(A, () -> {
            boolean hidden = CallScope.outside(() -> CallScope.current() == null);
            assertThat(hidden).isTrue();
            assertThat(CallScope.current()).isNotNull();
        });
    }

    @Test
    void threadsStartedInsideHaveNoScope() {
        var pool = Executors.newSingleThreadExecutor();
        try {
            boolean none = IdempotenceScope.with(
                    A,
                    () -> CompletableFuture.supplyAsync(() -> CallScope.current() == null, pool)
                            .join());
            assertThat(none).isTrue();
        } finally {
            pool.shutdownNow();
        }
    }

    @Test
    void carriedWorkIsInTheScopeAndTheInboundRequestOfItsCarrier() throws Exception {
        var pool = Executors.newSingleThreadExecutor();
        InboundRequest inbound = InboundRequest.of("inbound");
        Runnable leave = inbound.enter();
        try {
            Callable<Boolean> here = () -> CallScope.current() != null
                    && idFor("x").equals(A)
                    && InboundRequest.current().equals(Optional.of(inbound));
            IdempotenceScope.with(A, () -> {
                Executor carrying = IdempotenceScope.carrying(pool);
                assertThat(CompletableFuture.supplyAsync(() -> unchecked(here), carrying)
                                .join())
                        .isTrue();
                assertThat(unchecked(() ->
                                pool.submit(IdempotenceScope.carried(here)).get()))
                        .isTrue();
            });
            assertThat(pool.submit(() -> CallScope.current() != null
                                    || InboundRequest.current().isPresent())
                            .get())
                    .as("nothing stays behind on the pooled thread")
                    .isFalse();
        } finally {
            leave.run();
            pool.shutdownNow();
        }
    }

    /** For threads that are started by hand. */
    @Test
    void carriedRunnableWorksOnAnyThread() throws Exception {
        AtomicReference<Object> seen = new AtomicReference<>();
        Thread thread =
                new Thread(IdempotenceScope.with(A, () -> IdempotenceScope.carried(() -> seen.set(idFor("x")))));
        thread.start();
        thread.join();
        assertThat(seen).hasValue(A);
    }

    @Test
    void outsideOfAScopeNothingIsCarriedAndExceptionsPass() {
        assertThatThrownBy(() -> IdempotenceScope.carried((Runnable) () -> {
                            throw new IllegalArgumentException("own");
                        })
                        .run())
                .isInstanceOf(IllegalArgumentException.class);
        assertThat(unchecked(IdempotenceScope.carried(() -> CallScope.current())))
                .isNull();
    }

    @Test
    void savingScopeSavesTheUsualIdOnceBeforeItIsUsed() {
        List<IdempotenceId> saved = new ArrayList<>();
        IdempotenceScope.saving(saved::add, () -> {
            assertThat(saved).isEmpty();
            assertThat(idFor("x", () -> B)).isEqualTo(B);
            assertThat(saved).containsExactly(B);
            assertThat(idFor("x", () -> A)).isEqualTo(B);
            return null;
        });
        assertThat(saved).containsExactly(B);
    }

    @Test
    void idThatCouldNotBeSavedIsNotUsedUntilItIs() {
        List<IdempotenceId> offered = new ArrayList<>();
        IdempotenceScope.<@Nullable Object, RuntimeException>saving(
                id -> {
                    offered.add(id);
                    if (offered.size() == 1) {
                        throw new IllegalStateException("disk full");
                    }
                },
                () -> {
                    assertThatThrownBy(() -> idFor("x", () -> A)).hasMessage("disk full");
                    assertThat(idFor("x", () -> B)).isEqualTo(A);
                    return null;
                });
        assertThat(offered).containsExactly(A, A);
    }

    /** A later resume finds one ID. */
    @Test
    void savingScopeSavesNoSecondId() {
        List<IdempotenceId> saved = new ArrayList<>();
        IdempotenceScope.<@Nullable Object, RuntimeException>saving(saved::add, () -> {
            IdempotenceScope.with(A, () -> idFor("x"));
            assertThatThrownBy(() -> IdempotenceScope.with(B, () -> idFor("x")))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("IdempotenceScope.saving");
            return null;
        });
        assertThat(saved).containsExactly(A);
    }

    @Test
    void scopesOfOneIdAreTakenByOneCall() {
        IdempotenceScope.with(A, () -> {
            IdempotenceScope.with(A, () -> idFor("x"));
            assertThatThrownBy(() -> idFor("y"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("taken by x");
        });
    }

    /** What asks in another thread asks all the same. */
    @Test
    void resumedCallMayBeMadeInCarriedWork() throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        try {
            Work<IdempotenceId, Exception> asking = () ->
                    pool.submit(IdempotenceScope.carried(() -> idFor("x"))).get();
            assertThat(IdempotenceScope.resume(A, Instant.now(), asking)).isEqualTo(A);
        } finally {
            pool.shutdownNow();
        }
    }

    /** The retry of a future runs its supplier on threads of its own. */
    @Test
    void carriedSupplierOfAStageIsInTheScopeOfItsCarrier() {
        ScheduledExecutorService timers = Executors.newSingleThreadScheduledExecutor();
        AtomicInteger runs = new AtomicInteger();
        try {
            Supplier<CompletionStage<IdempotenceId>> asked = IdempotenceScope.with(
                    A,
                    () -> IdempotenceScope.carried(() -> runs.incrementAndGet() < 3
                            ? CompletableFuture.failedFuture(new IOException("lost"))
                            : CompletableFuture.completedFuture(idFor("x"))));
            assertThat(Retry.ofDefaults("outer")
                            .executeCompletionStage(timers, asked)
                            .toCompletableFuture()
                            .join())
                    .isEqualTo(A);
            assertThat(CallScope.current()).isNull();
        } finally {
            timers.shutdownNow();
        }
    }

    /** The deadline counts: the last attempt must still find the record. */
    @Test
    void resumedIdIsGivenOutAsLongAsTheServerHalfRemembersItUntilTheDeadline() {
        Instant forgotten = Instant.now().minus(Duration.ofHours(24));
        assertThat(IdempotenceScope.resume(A, forgotten.plusSeconds(60), IdempotenceScopeTest::idOfACall))
                .isEqualTo(A);
        assertThatThrownBy(() -> IdempotenceScope.resume(A, forgotten.plusSeconds(9), IdempotenceScopeTest::idOfACall))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("idempotence.client.server-retention");
    }

    /** It was followed by "resume found no call that carries an ID". */
    @Test
    void callerWhoCatchesTheRefusalOfAnOldIdGetsNoOtherError() {
        Instant forgotten = Instant.now().minus(Duration.ofHours(24));
        Throwable refusal =
                IdempotenceScope.resume(A, forgotten, () -> catchThrowable(IdempotenceScopeTest::idOfACall));
        assertThat(refusal).hasMessageContaining("idempotence.client.server-retention");
    }

    @Test
    void doubtOfTheCallThatWasSentFirstOutlivesItsEnd() {
        IdempotenceScope.with(A, () -> {
            ScopeHistory.Call first = begin("x", () -> A);
            ScopeHistory.Call second = begin("x", () -> A);
            assertThat(second.isInDoubt()).isFalse();
            first.sent();
            Instant sent = first.firstSentAt();
            assertThat(first.isInDoubt()).isFalse();
            assertThat(second.isInDoubt()).isTrue();
            assertThat(second.firstSentAt()).isEqualTo(sent);
            first.ended(true);
            ScopeHistory.Call third = begin("x", () -> A);
            assertThat(third.isInDoubt()).isTrue();
            assertThat(third.firstSentAt()).isEqualTo(sent);
        });
    }

    @Test
    void callThatCertainlyWasNotExecutedLeavesNoDoubt() {
        IdempotenceScope.with(A, () -> {
            ScopeHistory.Call first = begin("x", () -> A);
            first.sent();
            first.ended(false);
            assertThat(begin("x", () -> A).isInDoubt()).isFalse();
            ScopeHistory.Call responded = begin("x", () -> A);
            responded.sent();
            responded.responded();
            responded.ended(false);
            assertThat(begin("x", () -> A).isInDoubt()).isTrue();
        });
    }

    private static <T> T unchecked(Callable<T> work) {
        try {
            return work.call();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
