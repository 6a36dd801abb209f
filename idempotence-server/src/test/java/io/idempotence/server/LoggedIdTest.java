package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceStorage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;

/** The ID is in the logs of the work, and nowhere else. */
class LoggedIdTest {
    private static final IdempotenceId OUTER = new IdempotenceId("order-1");
    private static final IdempotenceId INNER = new IdempotenceId("order-1-email");

    private final Idempotence idempotence = Idempotence.over(IdempotenceStorage.inMemory());

    @AfterEach
    void close() {
        idempotence.close();
        MDC.clear();
    }

    @Test
    void workSeesItsIdInTheMdc() throws Exception {
        assertThat(idempotence.execute(OUTER, LoggedIdTest::logged)).isEqualTo("order-1");
        assertThat(logged()).isNull();
    }

    @Test
    void workInsideWorkGivesTheOuterIdBack() throws Exception {
        String seen = idempotence.execute(OUTER, () -> {
            String before = logged();
            String inner = idempotence.execute(INNER, LoggedIdTest::logged);
            return before + " " + inner + " " + logged();
        });

        assertThat(seen).isEqualTo("order-1 order-1-email order-1");
    }

    @Test
    void workThatFailsLeavesNothingBehind() {
        MDC.put("idempotenceId", "the application's own");

        assertThatIllegalStateException()
                .isThrownBy(() -> idempotence.execute(OUTER, () -> {
                    throw new IllegalStateException("failed");
                }));

        assertThat(logged()).isEqualTo("the application's own");
    }

    @Test
    void alarmsInTheLogCarryTheirId() {
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> idempotence.execute(OUTER, ResultCodec.text(), execution -> {
                        execution.markUnknown();
                        throw new IllegalStateException("failed");
                    }));
            assertThatThrownBy(() -> idempotence.execute(OUTER, () -> "not run"))
                    .isInstanceOf(ExecutionRefusedException.class);
            assertThat(log.warnings()).hasSize(2).allSatisfy(event -> {
                assertThat(event.getMDCPropertyMap()).containsEntry("idempotenceId", "order-1");
                assertThat(event.getFormattedMessage()).startsWith("UNKNOWN").doesNotContain("order-1");
            });
        }
        assertThat(logged()).isNull();
    }

    private static String logged() {
        return MDC.get("idempotenceId");
    }
}
