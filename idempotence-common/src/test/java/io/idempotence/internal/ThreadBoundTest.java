package io.idempotence.internal;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.HelpingWorker;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ForkJoinTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class ThreadBoundTest {
    private final ThreadBound<String> bound = new ThreadBound<>();

    private String seen() {
        return Objects.requireNonNullElse(bound.get(), "none");
    }

    @Test
    void nestedTasksSeeTheInnermostValue() {
        String seen = bound.during("outer", () -> {
            String hidden = bound.during(null, this::seen);
            return bound.during("inner", this::seen) + hidden + seen();
        });
        assertThat(seen + seen()).isEqualTo("innernoneouternone");
    }

    @Test
    void eachOfTheTasksThatAWorkerRunsOnTopOfEachOtherSeesItsOwnValue() throws Exception {
        List<String> seen = HelpingWorker.call(() -> bound.during("first", () -> {
            String ofSecond = HelpingWorker.awaiting(() -> {
                String before = seen();
                return bound.during("second", () -> before + HelpingWorker.awaiting(this::seen) + seen()) + seen();
            });
            return List.of(ofSecond, seen());
        }));
        assertThat(seen).containsExactly("nonenonesecondnone", "first");
    }

    /** Whether a worker runs a part of its task itself or another one does, the part sees the same. */
    @Test
    void partsOfATaskSeeNothingThatIsBoundAroundThem() throws Exception {
        List<String> seen = HelpingWorker.call(() -> bound.during("around", () -> {
            Collection<ForkJoinTask<String>> parts =
                    ForkJoinTask.invokeAll(List.of(ForkJoinTask.adapt(this::seen), ForkJoinTask.adapt(this::seen)));
            String forked = ForkJoinTask.adapt(this::seen).fork().join();
            return Stream.of(
                            parts.stream().map(ForkJoinTask::join),
                            Stream.of(1, 2, 3, 4).parallel().map(i -> seen()).toList().stream(),
                            Stream.of(forked))
                    .flatMap(each -> each)
                    .toList();
        }));
        assertThat(seen).hasSize(7).containsOnly("none");
    }

    /** It has no tasks of others to help with. */
    @Test
    void partThatAnOrdinaryThreadRunsItselfSeesTheValue() {
        assertThat(bound.during("around", () -> ForkJoinTask.adapt(this::seen).invoke()))
                .isEqualTo("around");
    }
}
