package io.idempotence.server;

import static io.idempotence.server.FaultyProvider.ID;
import static io.idempotence.server.FaultyProvider.KEY;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.http.Refusal;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests of what {@link Idempotence#execute} returns, the first time and again. */
class ExecutionResultTest {
    @RegisterExtension
    private final FaultyProvider provider = new FaultyProvider();

    private final IdempotenceStorage memory = provider.memory;

    @Test
    @DisplayName("T14: an overtaken execution's own result is discarded")
    void anOvertakenWorkThatEndsWellIsRefusedAsInProgress() {
        assertThatThrownBy(() -> provider.idempotence()
                        .execute(ID, ResultCodec.text(), (IdempotentWork<String>) execution -> {
                            execution.overtaken();
                            return provider.work();
                        }))
                .isInstanceOfSatisfying(ExecutionRefusedException.class, e -> {
                    assertThat(e.refusal()).isEqualTo(Refusal.IN_PROGRESS);
                    assertThat(e.id()).isEqualTo(ID);
                    assertThat(e.retryAfter()).isPositive();
                });
        assertThat(memory.find(KEY).orElseThrow().state()).isEqualTo(State.RELEASED);
    }

    @Test
    void aCodecThatBreaksDownNeverLetsTheWorkRunAgain() {
        Idempotence idempotence = provider.idempotence();
        ResultCodec<String> broken = ResultCodec.of(
                text -> {
                    throw new StackOverflowError();
                },
                bytes -> "never");
        assertThatThrownBy(() -> idempotence.execute(ID, broken, provider::work))
                .isInstanceOf(StackOverflowError.class);
        assertThatThrownBy(() -> idempotence.execute(ID, broken, provider::work))
                .isInstanceOfSatisfying(
                        ExecutionRefusedException.class,
                        e -> assertThat(e.refusal()).isEqualTo(Refusal.RESULT_UNAVAILABLE));
        assertThat(provider.runs).hasValue(1);
    }

    @Test
    void aResultOfNullIsGivenAgain() throws Exception {
        Idempotence idempotence = provider.idempotence();
        for (int i = 0; i < 2; i++) {
            String result = idempotence.execute(ID, () -> {
                provider.runs.incrementAndGet();
                return null;
            });
            assertThat(result).isNull();
        }
        assertThat(provider.runs).hasValue(1);
    }

    @Test
    void aListenerThatBreaksDownChangesNothing() throws Exception {
        Idempotence idempotence = Idempotence.builder(memory)
                .listener((event, which) -> {
                    throw new AssertionError("a listener's bug");
                })
                .build();
        provider.closeAfterwards(idempotence);
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo("run 1");
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo("run 1");
    }

    @Test
    void aTextGoesThroughTheStorageAsItIs() throws Exception {
        String text = "äöü €";
        Idempotence idempotence = provider.idempotence();
        idempotence.execute(ID, () -> text);
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo(text);
        assertThat(text.getBytes(StandardCharsets.UTF_8)).hasSizeGreaterThan(text.length());
    }

    /** It looked as if the work had failed: its message was delivered again and again, though the operation was done. */
    @Test
    @DisplayName(
            "P2: a stored result that its codec cannot read is refused as unavailable, not as a failure of the work")
    void aResultThatItsCodecCannotReadIsUnavailable() throws Exception {
        ResultCodec<String> broken = ResultCodec.of(text -> new byte[0], bytes -> {
            throw new IllegalStateException("cannot decode");
        });
        provider.idempotence().execute(ID, broken, provider::work);
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            assertThatThrownBy(() -> provider.idempotence().execute(ID, broken, provider::work))
                    .hasRootCauseMessage("cannot decode")
                    .isInstanceOfSatisfying(ExecutionRefusedException.class, e -> {
                        assertThat(e.refusal()).isEqualTo(Refusal.RESULT_UNAVAILABLE);
                        assertThat(e.id()).isEqualTo(ID);
                        assertThat(e.retryAfter()).isZero();
                    });
            assertThat(log.warnings()).singleElement().satisfies(warning -> {
                assertThat(warning.getFormattedMessage()).contains("cannot decode a stored result");
                assertThat(warning.getMDCPropertyMap()).containsEntry("idempotenceId", ID.value());
            });
        }
        assertThat(provider.runs).hasValue(1);
        assertThat(provider.events).doesNotContain(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    void aResultWhoseClassIsGoneIsUnavailable() throws Exception {
        ResultCodec<String> withoutItsClass = ResultCodec.of(text -> new byte[0], bytes -> {
            throw new NoClassDefFoundError("com/example/Receipt");
        });
        Idempotence idempotence = provider.idempotence();
        idempotence.execute(ID, withoutItsClass, provider::work);
        assertThatThrownBy(() -> idempotence.execute(ID, withoutItsClass, provider::work))
                .hasCauseInstanceOf(NoClassDefFoundError.class)
                .isInstanceOfSatisfying(
                        ExecutionRefusedException.class,
                        e -> assertThat(e.refusal()).isEqualTo(Refusal.RESULT_UNAVAILABLE));
        assertThat(provider.runs).hasValue(1);
    }
}
