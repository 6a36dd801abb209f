package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.internal.call.CallStateMachine.NextStep;
import io.idempotence.client.internal.http.Observation;
import java.io.IOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Calls that a retry above the client half runs again. */
class CallStateMachineTest {
    private final IOException before = new IOException("of the run before");

    private static NextStep begin(LogicalCall call) {
        return new CallStateMachine(call, Retry.ofDefaults("orders"), new ClientWithoutResponses()).begin();
    }

    @Test
    void firstRunIsSentHoweverShortItsDeadline() {
        assertThat(begin(TestCalls.withId(Duration.ofMillis(5)))).isEqualTo(new NextStep.Send(0));
    }

    /** A request that can only time out would turn a certain failure into doubt. */
    @Test
    void runAfterAFailureIsNotSentWithLessTimeThanARequestNeeds() {
        LogicalCall call = TestCalls.withId(Duration.ofMillis(9));
        call.ended(Result.FAILED, before);
        assertThat(begin(call)).isEqualTo(new NextStep.Throw(before));
    }

    @Test
    void runAfterAFailureIsSentWhileThereIsTime() {
        LogicalCall call = TestCalls.withId(Duration.ofMinutes(1));
        call.ended(Result.FAILED, before);
        assertThat(begin(call)).isEqualTo(new NextStep.Send(0));
    }

    /** A client that returns error responses, and whose call was cancelled when the response came. The exception read as "not executed". */
    @Test
    void failureOfTheHandlerWhoseResponseCannotBeReturnedIsUnknown() {
        IOException unknown = new IOException("unknown");
        LogicalCall call = TestCalls.withId(Duration.ofMinutes(1));
        CallStateMachine steps = new CallStateMachine(call, Retry.ofDefaults("orders"), new ClientWithoutResponses() {
            @Override
            public boolean returnsErrors() {
                return true;
            }

            @Override
            public Throwable unknown(Observation seen, Throwable cause) {
                return unknown;
            }
        });
        NextStep step = steps.begin();
        for (int request = 1; step instanceof NextStep.Send; request++) {
            steps.attemptToSend();
            Observation seen = new Observation();
            seen.started();
            call.countRequest();
            if (request == 1) {
                seen.responded(500, Map.of());
                step = steps.after(seen, "error", null);
            } else {
                ConnectException refused = new ConnectException("refused");
                seen.notSent(refused);
                step = steps.after(seen, null, refused);
            }
        }
        assertThat(step).isEqualTo(new NextStep.Throw(unknown));
    }
}
