package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.idempotence.http.Refusal;
import java.util.concurrent.Callable;

/** The refusals of executions. */
public final class Refusals {
    private Refusals() {}

    /** Why this execution is refused; it fails if it is not. */
    public static Refusal refusalOf(Callable<?> execution) {
        ExecutionRefusedException refused = catchThrowableOfType(ExecutionRefusedException.class, execution::call);
        assertThat(refused).as("a refusal").isNotNull();
        return refused.refusal();
    }
}
