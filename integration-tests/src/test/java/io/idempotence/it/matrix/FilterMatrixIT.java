package io.idempotence.it.matrix;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.Container;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that clients see what they see without our filter, whatever filter is in front of it or behind it, in every container. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class FilterMatrixIT {
    private final List<Finding> findings = new ArrayList<>();

    @BeforeAll
    void fillTheMatrix() throws Exception {
        // Handlers and filters that fail are a part of it, and containers log each with its stack trace.
        try (QuietLogs quiet = new QuietLogs()) {
            for (Container container : Container.available()) {
                try (Matrix matrix = new Matrix(container)) {
                    findings.addAll(Finding.of(container, matrix.fill()));
                }
            }
        }
    }

    static Stream<Arguments> stacks() {
        return Container.available().stream()
                .flatMap(container -> Stack.all().stream().map(stack -> Arguments.of(container.title(), stack)));
    }

    @ParameterizedTest(name = "{0}: {1}")
    @MethodSource("stacks")
    void everyCallerSeesWhatItSeesWithoutOurFilter(String container, Stack stack) {
        assertThat(findings)
                .filteredOn(finding -> finding.container().title().equals(container)
                        && finding.stack().equals(stack))
                .isNotEmpty()
                .flatExtracting(Finding::differences)
                .isEmpty();
    }

    @Test
    void thePageShowsWhatWasMeasured() throws Exception {
        FiltersPage.check(findings);
    }
}
