package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import io.idempotence.server.Decision;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets a duplicate wait for the first attempt to end if its caller prefers that ({@code Prefer: wait=5}, RFC 7240, section 4.3; rule 17):
 * without a thread where the servlet and every filter in front support asynchronous processing, else only a few at a time.
 */
final class Waiting {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);
    private static final Pattern WAIT =
            Pattern.compile("(?:^|[,;])\\s*wait\\s*=\\s*\"?([0-9]{1,9})\"?\\s*(?:$|[,;])", Pattern.CASE_INSENSITIVE);

    /** Blocked threads are the container's, which the first attempt may need as well. */
    private static final int MAX_BLOCKED = 16;

    private final Duration longest;
    private final Semaphore blocked = new Semaphore(MAX_BLOCKED);

    Waiting(Duration longest) {
        this.longest = longest;
    }

    /** Acts on a decision. */
    @FunctionalInterface
    interface Action {
        void on(Decision decision) throws IOException, ServletException;
    }

    /** Claims with the patience that the caller prefers, and acts on the decision at once, or, unless it is to run, when it is there. */
    void decide(
            HttpServletRequest request,
            HttpServletResponse response,
            Function<Duration, CompletableFuture<Decision>> claim,
            Action action)
            throws IOException, ServletException {
        Duration patience = patience(request);
        // A filter in front may have started it, and then no other may.
        boolean mayGoAsync = request.isAsyncSupported() && !request.isAsyncStarted();
        if (patience.isZero() || (!mayGoAsync && !blocked.tryAcquire())) {
            action.on(claim.apply(Duration.ZERO).join());
        } else if (mayGoAsync) {
            CompletableFuture<Decision> decision = claim.apply(patience);
            if (decision.isDone()) {
                action.on(decision.join());
            } else {
                actLater(request.startAsync(request, response), response, decision, action);
            }
        } else {
            Decision decision;
            try {
                decision = blocking(claim.apply(patience));
            } finally {
                blocked.release();
            }
            action.on(decision);
        }
    }

    /** How long a request prefers to wait, and may; zero if it does not say so in a form we know. The first preference counts. */
    private Duration patience(HttpServletRequest request) {
        for (String line : Collections.list(request.getHeaders(IdempotenceHeaders.PREFER))) {
            Matcher matcher = WAIT.matcher(line);
            if (matcher.find()) {
                Duration preferred = Duration.ofSeconds(Long.parseLong(matcher.group(1)));
                return preferred.compareTo(longest) < 0 ? preferred : longest;
            }
        }
        return Duration.ZERO;
    }

    /** Nothing is dispatched again: a dispatch that this filter did not see would run the handler. */
    private static void actLater(
            AsyncContext async, HttpServletResponse response, CompletableFuture<Decision> decision, Action action) {
        // The wait itself ends in time. A container that gave up would answer with the handler's success: nothing at
        // all.
        async.setTimeout(0);
        Leaving leaving = new Leaving(decision);
        async.addListener(leaving);
        decision.thenAccept(decided -> {
            Runnable task = () -> {
                if (!leaving.gone) {
                    finish(async, response, decided, action);
                }
            };
            try {
                async.start(task);
            } catch (RejectedExecutionException e) {
                task.run();
            } catch (IllegalStateException e) {
                LOG.debug("a caller that waited is gone", e);
            }
        });
    }

    private static void finish(AsyncContext async, HttpServletResponse response, Decision decision, Action action) {
        try {
            action.on(decision);
        } catch (IOException e) {
            LOG.debug("a caller that waited is gone", e);
        } catch (Throwable e) {
            LOG.error("a caller that waited could not be answered", e);
            fail(response);
        } finally {
            complete(async);
        }
    }

    /** An answer of nothing would look like a success. */
    private static void fail(HttpServletResponse response) {
        if (!response.isCommitted()) {
            response.reset();
            response.setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
        }
    }

    private static void complete(AsyncContext async) {
        try {
            async.complete();
        } catch (IllegalStateException e) {
            LOG.debug("a caller that waited is gone", e);
        }
    }

    private static Decision blocking(CompletableFuture<Decision> decision) {
        try {
            return decision.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            decision.cancel(false);
            return new Decision.Refuse(Refusal.IN_PROGRESS, Duration.ofSeconds(1));
        } catch (ExecutionException e) {
            throw new IllegalStateException("a wait never fails", e);
        }
    }

    /** The client is gone: nobody waits any more. */
    private static final class Leaving implements AsyncListener {
        private final CompletableFuture<Decision> decision;
        volatile boolean gone;

        Leaving(CompletableFuture<Decision> decision) {
            this.decision = decision;
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            leave();
        }

        @Override
        public void onError(AsyncEvent event) {
            leave();
        }

        @Override
        public void onComplete(AsyncEvent event) {
            leave();
        }

        private void leave() {
            gone = true;
            decision.cancel(false);
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // nothing starts it again
        }
    }
}
