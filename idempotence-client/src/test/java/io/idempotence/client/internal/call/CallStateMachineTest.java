package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.internal.call.CallStateMachine.Step;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.scope.ScopeHistory;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A call that a retry around this half runs again. */
class CallStateMachineTest {
    private final IOException before = new IOException("of the run before");

    private static final Logger LOG = LoggerFactory.getLogger(CallStateMachineTest.class);

    private static LogicalCall call(Duration deadline) {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder().build();
        ClientOperation operation = new ClientOperation("orders", "create", "create", config, null, LOG);
        CallIdentity identity = new CallIdentity(operation, operation::method, null, null, ScopeHistory.ofOneCall());
        identity.decide("POST", List.of("\"order-1\""), () -> {
            throw new AssertionError("the caller gives an ID");
        });
        return new LogicalCall(operation, identity, deadline);
    }

    private static Step begin(LogicalCall call) {
        return new CallStateMachine(call, Retry.ofDefaults("orders"), new NoClient()).begin();
    }

    @Test
    void firstRunIsSentHoweverShortItsDeadline() {
        assertThat(begin(call(Duration.ofMillis(5)))).isEqualTo(new Step.Send(0));
    }

    /** A request that can only time out would turn a certain failure into doubt. */
    @Test
    void runAfterAFailureIsNotSentWithLessTimeThanARequestNeeds() {
        LogicalCall call = call(Duration.ofMillis(9));
        call.ended(Result.FAILED, before);
        assertThat(begin(call)).isEqualTo(new Step.Throw(before));
    }

    @Test
    void runAfterAFailureIsSentWhileThereIsTime() {
        LogicalCall call = call(Duration.ofMinutes(1));
        call.ended(Result.FAILED, before);
        assertThat(begin(call)).isEqualTo(new Step.Send(0));
    }

    /** Nothing is sent here. */
    private static final class NoClient implements ClientAdapter {
        @Override
        public Object send(int attempt, Observation seen) {
            throw new AssertionError("sent");
        }

        @Override
        public void discard(@Nullable Object value) {
            // there is no value
        }

        @Override
        public Throwable failureOf(@Nullable Object value) {
            throw new AssertionError("no value");
        }

        @Override
        public Throwable refused(Refusal refusal, Observation seen, Throwable cause) {
            throw new AssertionError("no response");
        }

        @Override
        public Throwable unknown(Observation seen, Throwable cause) {
            throw new AssertionError("no response");
        }
    }
}
