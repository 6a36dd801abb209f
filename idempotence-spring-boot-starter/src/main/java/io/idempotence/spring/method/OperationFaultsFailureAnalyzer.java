package io.idempotence.spring.method;

import java.util.stream.Collectors;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** The failure analyzer for {@link OperationFaultsException}. */
final class OperationFaultsFailureAnalyzer extends AbstractFailureAnalyzer<OperationFaultsException> {
    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, OperationFaultsException found) {
        return new FailureAnalysis(
                "@Idempotent cannot work as it is used:\n"
                        + found.faults().stream()
                                .map(fault -> "\n    " + fault.where() + ": " + fault.what() + ".")
                                .collect(Collectors.joining()),
                found.faults().stream().map(OperationFault::action).distinct().collect(Collectors.joining("\n")),
                found);
    }
}
