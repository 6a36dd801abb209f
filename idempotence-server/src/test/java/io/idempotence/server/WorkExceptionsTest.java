package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Tests of what callers and policies see of what work throws. */
class WorkExceptionsTest {
    private static final class NeitherExceptionNorError extends Throwable {
        private static final long serialVersionUID = 1L;
    }

    private final IdempotenceStorage storage = IdempotenceStorage.inMemory();
    private final Idempotence idempotence = Idempotence.over(storage);
    private final IdempotenceId id = IdempotenceId.of("order-1");

    @AfterEach
    void close() {
        idempotence.close();
    }

    private State state() {
        return storage.find(StorageKey.of("default", "", "execute", id))
                .orElseThrow()
                .state();
    }

    @Test
    @DisplayName("execute throws the CompletionException that its work threw, whatever its cause")
    void aCompletionExceptionIsThrownAsItIs() {
        for (Throwable cause : new Throwable[] {
            new IOException("checked"), new NeitherExceptionNorError(), new StackOverflowError(), null
        }) {
            CompletionException thrown = new CompletionException("joined", cause);
            assertThatThrownBy(() -> idempotence.execute(id, () -> {
                        throw thrown;
                    }))
                    .isSameAs(thrown);
            assertThat(state()).isEqualTo(State.RELEASED);
        }
    }

    @Test
    @DisplayName("a policy with a rule for CompletionException decides about the one that the work threw")
    void aPolicyMayHaveARuleForCompletionException() {
        IdempotencePolicy keeps = IdempotencePolicy.builder()
                .exception(CompletionException.class, Verdict.KEEP)
                .build();
        CompletionException thrown = new CompletionException(new IOException("checked"));
        assertThatThrownBy(() -> idempotence.execute(
                        IdempotentCall.of(id), keeps, ResultCodec.text(), (IdempotentWork<String>) execution -> {
                            throw thrown;
                        }))
                .isSameAs(thrown);
        assertThat(state()).isEqualTo(State.COMPLETED);
    }

    @Test
    @DisplayName("executeAsync fails with what its work's future failed with, whatever that is")
    void aFutureFailsWithWhatItsWorkFailedWith() {
        for (Throwable cause :
                new Throwable[] {new IOException("checked"), new NeitherExceptionNorError(), new StackOverflowError()
                }) {
            CompletableFuture<String> failed =
                    CompletableFuture.<String>failedFuture(cause).thenApply(value -> value + " was never there");
            CompletableFuture<String> result = idempotence.executeAsync(
                    IdempotentCall.of(id),
                    IdempotencePolicy.defaults(),
                    Duration.ZERO,
                    ResultCodec.text(),
                    (IdempotentWork<CompletionStage<String>>) execution -> failed);
            assertThat(catchThrowable(result::join)).hasCause(cause);
            assertThat(state()).isEqualTo(State.RELEASED);
        }
    }
}
