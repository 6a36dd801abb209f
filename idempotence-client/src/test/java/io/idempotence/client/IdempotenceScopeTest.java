package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

class IdempotenceScopeTest {
    private static final IdempotenceId A = IdempotenceId.of("a");
    private static final IdempotenceId B = IdempotenceId.of("b");

    private static IdempotenceId idFor(String call) {
        return IdempotenceScope.current().orElseThrow().idFor(call);
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
}
