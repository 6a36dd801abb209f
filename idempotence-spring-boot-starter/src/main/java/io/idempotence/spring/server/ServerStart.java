package io.idempotence.spring.server;

import io.idempotence.spring.internal.SetUpException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.support.DefaultSingletonBeanRegistry;
import org.springframework.context.SmartLifecycle;

/**
 * The check of the storage while the application starts. It runs beside the start, and {@linkplain StorageProbe probes} the storage. What
 * only an operator can repair fails the start. A storage that is down does not: requests get 503 until it is up. The check then goes on, and
 * logs what it would have refused.
 *
 * <p>The start waits for the check after every bean exists and before anything serves, because even the last bean may be the first to use
 * the storage. Storage that is first used later is checked then.
 */
final class ServerStart implements SmartLifecycle {
    private static final Logger LOG = LoggerFactory.getLogger(ServerStart.class);
    private static final Duration LONGEST = Duration.ofSeconds(3);
    private static final Duration BETWEEN_PROBES = Duration.ofSeconds(1);

    private final DefaultSingletonBeanRegistry beans;
    private volatile String filter = "";
    private volatile @Nullable StartCheck check;
    private volatile boolean isRunning;

    ServerStart(DefaultSingletonBeanRegistry beans) {
        this.beans = beans;
    }

    /** A check that runs in a thread of its own until the storage has responded once. */
    private static final class StartCheck {
        final ServerParts parts;
        final CompletableFuture<Void> firstProbe = new CompletableFuture<>();
        final Thread thread = new Thread(this::run, "idempotence-start");
        private final StorageProbe probe;
        private final CountDownLatch cancelled = new CountDownLatch(1);
        volatile boolean hasWorked;

        StartCheck(ServerParts parts) {
            this.parts = parts;
            this.probe = new StorageProbe(parts);
            thread.setDaemon(true);
        }

        private void run() {
            try {
                while (!hasResponded() && !cancelled.await(BETWEEN_PROBES.toMillis(), TimeUnit.MILLISECONDS)) {
                    // The next probe.
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        /** Whether the storage works, or never will. */
        private boolean hasResponded() {
            try {
                probe.run();
                hasWorked = true;
                firstProbe.complete(null);
                return true;
            } catch (Throwable e) {
                SetUpException refusal = probe.refusal(e);
                if (!firstProbe.completeExceptionally(refusal == null ? e : refusal) && refusal != null) {
                    report(refusal);
                }
                return refusal != null || cancelled.getCount() == 0;
            }
        }

        void cancel() {
            cancelled.countDown();
            thread.interrupt();
        }

        /** Logs a refusal that came too late to fail the start. */
        static void report(SetUpException refusal) {
            LOG.error("{} {}", refusal.getMessage(), refusal.action());
        }
    }

    /** Adds what the filter covers to the line that is logged. */
    void describeFilter(String what) {
        filter = what + "; ";
    }

    /** What is in use; null if nothing in this application has asked for it. */
    @Nullable
    ServerParts parts() {
        StartCheck begun = check;
        return begun == null ? null : begun.parts;
    }

    /** Whether every kind of call to the storage has worked once. */
    boolean hasWorked() {
        StartCheck begun = check;
        return begun != null && begun.hasWorked;
    }

    /** Begins the check. The beans that the storage uses exist. */
    void begin(ServerParts parts) {
        StartCheck begun = new StartCheck(parts);
        check = begun;
        // After a start that failed, ends the check before the beans that it uses: they would wait for it.
        beans.registerDisposableBean("idempotenceStartCheck", this::cancel);
        begun.thread.start();
        if (isRunning) {
            end(begun);
        }
    }

    /** Ends a check that still runs. */
    void cancel() {
        StartCheck begun = check;
        if (begun != null) {
            begun.cancel();
        }
    }

    @Override
    public void start() {
        isRunning = true;
        StartCheck begun = check;
        if (begun != null) {
            end(begun);
        }
    }

    @Override
    public void stop() {
        isRunning = false;
    }

    @Override
    public boolean isRunning() {
        return isRunning;
    }

    /** Before everything that serves requests or messages. */
    @Override
    public int getPhase() {
        return Integer.MIN_VALUE;
    }

    /** @throws SetUpException if only an operator can repair what the check has found by now */
    private void end(StartCheck begun) {
        String what = filter + begun.parts.described();
        try {
            begun.firstProbe.get(LONGEST.toMillis(), TimeUnit.MILLISECONDS);
            LOG.info("Idempotence: {}", what);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException e) {
            down(what, "no response within " + LONGEST.toSeconds() + "s");
            begun.firstProbe.whenComplete((responded, fault) -> {
                if (fault instanceof SetUpException refusal) {
                    StartCheck.report(refusal);
                }
            });
        } catch (ExecutionException e) {
            Throwable fault = Objects.requireNonNullElse(e.getCause(), e);
            if (fault instanceof SetUpException refusal) {
                throw refusal;
            }
            down(what, String.valueOf(fault.getMessage()));
        }
    }

    private static void down(String what, String why) {
        LOG.warn(
                "Idempotence: {}. The storage does not respond yet: {}. The application starts. Protected requests get 503"
                        + " until the storage responds.",
                what,
                why);
    }
}
