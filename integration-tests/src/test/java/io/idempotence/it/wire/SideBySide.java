package io.idempotence.it.wire;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.function.ThrowingConsumer;

/** Cases of a test that mostly wait, and so run several at a time. Each is reported as a test of its own. */
public final class SideBySide {
    private static final int AT_A_TIME = 8;

    private SideBySide() {}

    public static <C> Stream<DynamicTest> test(Stream<C> cases, ThrowingConsumer<C> test) {
        ExecutorService threads = Executors.newFixedThreadPool(AT_A_TIME, runnable -> {
            Thread thread = new Thread(runnable, "side-by-side");
            thread.setDaemon(true);
            return thread;
        });
        List<DynamicTest> tests = cases.map(one -> started(threads, one, test)).toList();
        threads.shutdown();
        return tests.stream();
    }

    private static <C> DynamicTest started(ExecutorService threads, C one, ThrowingConsumer<C> test) {
        Future<?> run = threads.submit(() -> {
            try {
                test.accept(one);
            } catch (Exception | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
            return null;
        });
        return dynamicTest(one.toString(), () -> {
            try {
                run.get();
            } catch (ExecutionException e) {
                throw e.getCause();
            }
        });
    }
}
