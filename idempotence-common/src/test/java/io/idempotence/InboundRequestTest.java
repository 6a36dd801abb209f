package io.idempotence;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class InboundRequestTest {
    private static final byte[] BODY = "body".getBytes(StandardCharsets.UTF_8);

    private static IdempotenceId first(InboundRequest request) {
        return request.idOfNextCall("stock", "Stock#reserve()", "/reserve", BODY);
    }

    @Test
    void executionThatRunsAgainRepeatsTheIdsOfItsCalls() {
        InboundRequest once = InboundRequest.of("payments:42");
        InboundRequest again = InboundRequest.of("payments:42");
        List<IdempotenceId> ids = List.of(first(once), first(once), once.idOfNextCall("mail", "m", "/", null));
        assertThat(ids).doesNotHaveDuplicates();
        // In another order.
        assertThat(again.idOfNextCall("mail", "m", "/", null)).isEqualTo(ids.get(2));
        assertThat(first(again)).isEqualTo(ids.get(0));
        assertThat(first(again)).isEqualTo(ids.get(1));
    }

    @Test
    void callsThatDifferInAnythingHaveDifferentDerivedIds() {
        byte[] other = "other".getBytes(StandardCharsets.UTF_8);
        assertThat(List.of(
                        first(InboundRequest.of("a")),
                        first(InboundRequest.of("b")),
                        InboundRequest.of("a").idOfNextCall("x", "Stock#reserve()", "/reserve", BODY),
                        InboundRequest.of("a").idOfNextCall("stock", "x", "/reserve", BODY),
                        InboundRequest.of("a").idOfNextCall("stock", "Stock#reserve()", "/x", BODY),
                        InboundRequest.of("a").idOfNextCall("stock", "Stock#reserve()", "/reserve", other),
                        InboundRequest.of("a").idOfNextCall("stock", "Stock#reserve()", "/reserve", null)))
                .doesNotHaveDuplicates()
                .allSatisfy(id -> assertThat(id.value()).hasSize(43).doesNotContain("a:"));
    }

    @Test
    void holdsInItsThreadUntilLeft() throws Exception {
        InboundRequest outer = InboundRequest.of("outer");
        InboundRequest inner = InboundRequest.of("inner");
        assertThat(InboundRequest.current()).isEmpty();
        Runnable leaveOuter = outer.enter();
        Runnable leaveInner = inner.enter();
        assertThat(InboundRequest.current()).contains(inner);
        assertThat(CompletableFuture.supplyAsync(InboundRequest::current).get()).isEmpty();
        leaveInner.run();
        assertThat(InboundRequest.current()).contains(outer);
        leaveOuter.run();
        assertThat(InboundRequest.current()).isEmpty();
    }

    /** Promise P1: the waiting handler's calls and those of the other task are different ones. */
    @Test
    void anotherTaskThatRunsInItsThreadMeanwhileHasNone() throws Exception {
        InboundRequest waiting = InboundRequest.of("waiting");
        InboundRequest other = InboundRequest.of("other");
        Optional<InboundRequest> afterwards = HelpingWorker.call(() -> {
            Runnable leave = waiting.enter();
            assertThat(HelpingWorker.awaiting(InboundRequest::current)).isEmpty();
            assertThat(HelpingWorker.awaiting(() -> {
                        Runnable leaveOther = other.enter();
                        Optional<InboundRequest> entered = InboundRequest.current();
                        leaveOther.run();
                        return entered;
                    }))
                    .contains(other);
            assertThat(InboundRequest.current()).contains(waiting);
            leave.run();
            return InboundRequest.current();
        });
        assertThat(afterwards).isEmpty();
    }
}
