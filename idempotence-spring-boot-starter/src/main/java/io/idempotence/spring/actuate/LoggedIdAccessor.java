package io.idempotence.spring.actuate;

import io.micrometer.context.ThreadLocalAccessor;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * The accessor that carries the MDC's {@code idempotenceId} wherever Micrometer's context propagation carries the trace, such as to the
 * threads of {@code @Async} methods behind Spring's {@code ContextPropagatingTaskDecorator}. Found by the library itself.
 */
public final class LoggedIdAccessor implements ThreadLocalAccessor<String> {
    private static final String KEY = "idempotenceId";

    /** For the library. */
    public LoggedIdAccessor() {}

    @Override
    public Object key() {
        return KEY;
    }

    @Override
    public @Nullable String getValue() {
        return MDC.get(KEY);
    }

    @Override
    public void setValue(String id) {
        MDC.put(KEY, id);
    }

    @Override
    public void setValue() {
        MDC.remove(KEY);
    }
}
