package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.internal.call.CallStateMachine.Step;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Calls that a retry above the client half runs again. */
class CallStateMachineTest {
    private final IOException before = new IOException("of the run before");

    private static Step begin(LogicalCall call) {
        return new CallStateMachine(call, Retry.ofDefaults("orders"), new ClientWithoutResponses()).begin();
    }

    @Test
    void firstRunIsSentHoweverShortItsDeadline() {
        assertThat(begin(TestCalls.withId(Duration.ofMillis(5)))).isEqualTo(new Step.Send(0));
    }

    /** A request that can only time out would turn a certain failure into doubt. */
    @Test
    void runAfterAFailureIsNotSentWithLessTimeThanARequestNeeds() {
        LogicalCall call = TestCalls.withId(Duration.ofMillis(9));
        call.ended(Result.FAILED, before);
        assertThat(begin(call)).isEqualTo(new Step.Throw(before));
    }

    @Test
    void runAfterAFailureIsSentWhileThereIsTime() {
        LogicalCall call = TestCalls.withId(Duration.ofMinutes(1));
        call.ended(Result.FAILED, before);
        assertThat(begin(call)).isEqualTo(new Step.Send(0));
    }
}
