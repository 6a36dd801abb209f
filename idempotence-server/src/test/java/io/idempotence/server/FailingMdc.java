package io.idempotence.server;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntPredicate;
import org.slf4j.MDC;
import org.slf4j.spi.MDCAdapter;

/** The MDC of an application whose adapter fails in one of its methods, until this is closed. */
public final class FailingMdc implements AutoCloseable {
    private static final String MESSAGE = "the MDC adapter is broken";

    private final MDCAdapter working = MDC.getMDCAdapter();

    private FailingMdc() {}

    /**
     * @param method the method that fails
     * @param which the calls that fail, by their number; the first is 1
     */
    public static FailingMdc failing(String method, IntPredicate which) {
        FailingMdc mdc = new FailingMdc();
        AtomicInteger calls = new AtomicInteger();
        use((MDCAdapter) Proxy.newProxyInstance(
                MDCAdapter.class.getClassLoader(), new Class<?>[] {MDCAdapter.class}, (proxy, called, arguments) -> {
                    if (called.getName().equals(method) && which.test(calls.incrementAndGet())) {
                        throw new IllegalStateException(MESSAGE);
                    }
                    try {
                        return called.invoke(mdc.working, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
        return mdc;
    }

    /** An MDC that takes no value. */
    public static FailingMdc failing() {
        return failing("put", call -> true);
    }

    private static void use(MDCAdapter adapter) {
        try {
            Field used = MDC.class.getDeclaredField("MDC_ADAPTER");
            used.setAccessible(true);
            used.set(null, adapter);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("this version of SLF4J keeps its adapter elsewhere", e);
        }
    }

    @Override
    public void close() {
        use(working);
    }
}
