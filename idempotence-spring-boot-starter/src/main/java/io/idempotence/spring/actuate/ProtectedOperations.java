package io.idempotence.spring.actuate;

import java.util.List;

/** The operations that the application protects. The Actuator endpoint lists those of every bean of this type. */
@FunctionalInterface
public interface ProtectedOperations {
    /**
     * The operations.
     *
     * @return one for each, in a stable order
     */
    List<Operation> operations();

    /**
     * One protected operation.
     *
     * @param name the requests or the method that it covers, for example {@code POST /payments}
     * @param handler what handles it, for example {@code PaymentController#pay(Payment)}
     * @param settings its settings in words, for example {@code ID required, retention 1d}
     */
    record Operation(String name, String handler, String settings) {}
}
