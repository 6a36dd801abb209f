package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.HelpingWorker;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Promise P1: orders of one client in tasks that a fork-join worker runs one on top of the other have IDs of their own. */
class HelpingWorkerTest extends FeignTestBase {
    private final Orders orders = orders();

    private List<String> sent() {
        return server.ids().stream().map(id -> id.replace("\"", "")).toList();
    }

    private String save(List<String> saved) {
        return IdempotenceScope.saving(id -> saved.add(id.value()), () -> orders.create("x"));
    }

    @Test
    void orderOfATaskThatRunsWhileAScopeWaitsIsAnotherOne() throws Exception {
        List<String> first = new ArrayList<>();
        List<String> second = new ArrayList<>();
        HelpingWorker.call(() -> IdempotenceScope.saving(id -> first.add(id.value()), () -> {
            orders.create("x");
            HelpingWorker.awaiting(() -> save(second));
            HelpingWorker.awaiting(() -> orders.create("x"));
            return orders.create("x");
        }));
        assertThat(first).hasSize(1);
        assertThat(second).hasSize(1);
        assertThat(sent()).hasSize(4);
        assertThat(sent().subList(0, 3)).doesNotHaveDuplicates().startsWith(first.get(0), second.get(0));
        // The scope is there again, and this is its caller's retry.
        assertThat(sent().get(3)).isEqualTo(first.get(0));
    }

    /** While a handler waits, it makes no calls. */
    @Test
    void orderOfATaskThatRunsWhileAHandlerWaitsIsNoneOfTheHandlers() throws Exception {
        for (int execution = 1; execution <= 2; execution++) {
            boolean helps = execution == 2;
            HelpingWorker.call(() -> {
                Runnable leave = InboundRequest.of("request-1").enter();
                if (helps) {
                    HelpingWorker.awaiting(() -> orders.create("x"));
                }
                orders.create("x");
                leave.run();
                return true;
            });
        }
        assertThat(sent().get(2)).isEqualTo(sent().get(0));
        assertThat(sent().get(1)).isNotEqualTo(sent().get(0));
    }

    @Test
    void carriedTaskIsInTheScopeOfItsCarrier() throws Exception {
        HelpingWorker.call(() -> IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            Runnable order = IdempotenceScope.carried((Runnable) () -> orders.create("x"));
            return HelpingWorker.awaiting(() -> {
                order.run();
                return orders.create("x");
            });
        }));
        assertThat(sent()).hasSize(2).startsWith("job-1").doesNotHaveDuplicates();
    }

    /** The worker runs all parts itself, and other workers would see no scope either. */
    @Test
    void partsOfAParallelStreamHaveNoScope() throws Exception {
        List<String> saved = new ArrayList<>();
        HelpingWorker.call(() -> IdempotenceScope.<List<String>, RuntimeException>saving(
                id -> saved.add(id.value()),
                () -> IntStream.range(0, 4)
                        .parallel()
                        .mapToObj(i -> orders.create("x"))
                        .toList()));
        assertThat(saved).isEmpty();
        assertThat(sent()).hasSize(4).doesNotHaveDuplicates();
    }
}
