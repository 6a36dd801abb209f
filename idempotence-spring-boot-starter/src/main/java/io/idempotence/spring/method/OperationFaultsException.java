package io.idempotence.spring.method;

import java.util.List;
import java.util.stream.Collectors;

/** The faults of all methods with {@code @Idempotent}, which fail the start. */
final class OperationFaultsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<OperationFault> faults;

    OperationFaultsException(List<OperationFault> faults) {
        super(faults.stream()
                .map(fault -> fault.where() + ": " + fault.what() + ". " + fault.action())
                .collect(Collectors.joining("; ")));
        this.faults = List.copyOf(faults);
    }

    List<OperationFault> faults() {
        return faults;
    }
}
