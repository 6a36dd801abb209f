package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class IdempotenceScopeTest {
    private static final IdempotenceId A = IdempotenceId.of("a");
    private static final IdempotenceId B = IdempotenceId.of("b");
    private static final IdempotenceClientConfig CONFIG = IdempotenceClientConfig.defaults();

    private static IdempotenceId idFor(String call) {
        return IdempotenceScope.current().orElseThrow().idFor(call, CONFIG, () -> {
            throw new AssertionError("the scope has an ID");
        });
    }

    @Test
    void innerScopeHoldsUntilItsExit() {
        IdempotenceScope.with(A, () -> {
            IdempotenceScope.with(B, () -> assertThat(idFor("x")).isEqualTo(B));
            assertThat(idFor("y")).isEqualTo(A);
        });
        assertThat(IdempotenceScope.current()).isEmpty();
    }

    @Test
    void failureLeavesNoScopeBehind() {
        assertThatThrownBy(() -> IdempotenceScope.with(A, () -> {
                    throw new IOException("x");
                }))
                .isInstanceOf(IOException.class);
        assertThat(IdempotenceScope.current()).isEmpty();
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
            boolean hidden =
                    IdempotenceScope.outside(() -> IdempotenceScope.current().isEmpty());
            assertThat(hidden).isTrue();
            assertThat(IdempotenceScope.current()).isPresent();
        });
    }

    @Test
    void threadsStartedInsideHaveNoScope() {
        var pool = Executors.newSingleThreadExecutor();
        try {
            boolean none = IdempotenceScope.with(
                    A,
                    () -> CompletableFuture.supplyAsync(
                                    () -> IdempotenceScope.current().isEmpty(), pool)
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
            Callable<Boolean> here = () -> IdempotenceScope.current().isPresent()
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
            assertThat(pool.submit(() -> IdempotenceScope.current().isPresent()
                                    || InboundRequest.current().isPresent())
                            .get())
                    .as("nothing stays behind on the pooled thread")
                    .isFalse();
        } finally {
            leave.run();
            pool.shutdownNow();
        }
    }

    /** Whoever starts threads by hand. */
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
        assertThat(unchecked(IdempotenceScope.carried(() -> IdempotenceScope.current())))
                .isEmpty();
    }

    @Test
    void savingScopeSavesTheUsualIdOnceBeforeItIsUsed() {
        List<IdempotenceId> saved = new ArrayList<>();
        IdempotenceScope.saving(saved::add, () -> {
            IdempotenceScope scope = IdempotenceScope.current().orElseThrow();
            assertThat(saved).isEmpty();
            assertThat(scope.idFor("x", CONFIG, () -> B)).isEqualTo(B);
            assertThat(saved).containsExactly(B);
            assertThat(scope.idFor("x", CONFIG, () -> A)).isEqualTo(B);
            return null;
        });
        assertThat(saved).containsExactly(B);
    }

    @Test
    void idThatCouldNotBeSavedIsNotUsed() {
        IdempotenceScope.<@Nullable Object, RuntimeException>saving(
                id -> {
                    if (id.equals(A)) {
                        throw new IllegalStateException("disk full");
                    }
                },
                () -> {
                    IdempotenceScope scope = IdempotenceScope.current().orElseThrow();
                    assertThatThrownBy(() -> scope.idFor("x", CONFIG, () -> A)).hasMessage("disk full");
                    assertThat(scope.isTaken()).isFalse();
                    assertThat(scope.idFor("x", CONFIG, () -> B)).isEqualTo(B);
                    return null;
                });
    }

    /** The deadline counts: the last attempt must still find the record. */
    @Test
    void resumedIdIsGivenOutAsLongAsTheServerHalfKnowsItUntilTheDeadline() {
        Instant now = Instant.now();
        IdempotenceScope young =
                IdempotenceScope.resuming(A, now.minus(Duration.ofHours(24)).plusSeconds(60));
        assertThat(young.idFor("x", CONFIG, () -> B)).isEqualTo(A);
        IdempotenceScope old =
                IdempotenceScope.resuming(A, now.minus(Duration.ofHours(24)).plusSeconds(9));
        assertThatThrownBy(() -> old.idFor("x", CONFIG, () -> B))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("idempotence.client.server-retention");
        assertThat(old.isTaken()).isFalse();
    }

    @Test
    void doubtOfTheCallThatWasSentFirstOutlivesItsEnd() {
        Instant now = Instant.now();
        ScopeDoubt doubt = IdempotenceScope.with(
                A, () -> IdempotenceScope.current().orElseThrow().doubt());
        ScopeDoubt.Call first = doubt.newCall();
        ScopeDoubt.Call second = doubt.newCall();
        ScopeDoubt.Call third = doubt.newCall();
        first.sent(now);
        second.sent(now.plusSeconds(1));
        third.sent(now.plusSeconds(2));
        assertThat(first.sinceOthers()).contains(now.plusSeconds(1));
        third.notCarriedOut();
        second.endedInDoubt();
        assertThat(first.sinceOthers()).contains(now.plusSeconds(1));
        first.endedInDoubt();
        doubt.newCall().endedInDoubt();
        assertThat(first.sinceOthers()).contains(now);
        assertThat(doubt.since()).contains(now);
    }

    private static <T> T unchecked(Callable<T> work) {
        try {
            return work.call();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
