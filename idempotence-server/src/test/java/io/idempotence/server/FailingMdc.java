package io.idempotence.server;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import org.slf4j.MDC;
import org.slf4j.spi.MDCAdapter;

/** The MDC of an application whose adapter fails in one of its methods, until this is closed. */
public final class FailingMdc implements AutoCloseable {
    private final MDCAdapter working = MDC.getMDCAdapter();

    private FailingMdc() {}

    /**
     * @param method the method that fails
     * @param which the calls that fail, by their number; the first is 1
     */
    public static FailingMdc failing(String method, IntPredicate which) {
        return failing(method, which, () -> new IllegalStateException("the MDC adapter is broken"));
    }

    /** An MDC that finds no memory for its value in one of its calls, the first of which is number 1. */
    public static FailingMdc withoutMemory(int inCall) {
        return failing("put", call -> call == inCall, () -> new OutOfMemoryError("thrown by a test"));
    }

    private static FailingMdc failing(String method, IntPredicate which, Supplier<Throwable> failure) {
        FailingMdc mdc = new FailingMdc();
        AtomicInteger calls = new AtomicInteger();
        use((MDCAdapter) Proxy.newProxyInstance(
                MDCAdapter.class.getClassLoader(), new Class<?>[] {MDCAdapter.class}, (proxy, called, arguments) -> {
                    if (called.getName().equals(method) && which.test(calls.incrementAndGet())) {
                        throw failure.get();
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
