package io.idempotence.client.retry;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceAttemptEvent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.ScopeDoubt;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One call of a client method by the application, and everything its attempts share. It outlives hops between threads and
 * retries by layers outside of ours.
 */
public final class LogicalCall {
    private static final Logger LOG = LoggerFactory.getLogger(LogicalCall.class);

    private final String client;
    private final String method;
    private final IdempotenceClientConfig config;
    private final RetryBudget budget;
    private final Deadline deadline;
    private final long openedAt = System.nanoTime();
    private final AtomicInteger attempts = new AtomicInteger();
    private final AtomicInteger requests = new AtomicInteger();
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicBoolean published = new AtomicBoolean();
    private final AtomicReference<ScopeDoubt.@Nullable Call> withinScope = new AtomicReference<>();

    private volatile @Nullable IdempotenceId id;
    private volatile Instant firstSentAt = Instant.now();
    private volatile boolean safe;
    private volatile boolean inDoubt;
    private volatile boolean answered;
    private volatile boolean leftWithoutId;
    private volatile @Nullable Instant resumedFrom;
    private volatile @Nullable Result result;
    private volatile @Nullable Throwable lastFailure;

    public LogicalCall(String client, String method, IdempotenceClientConfig config, RetryBudget budget) {
        this(client, method, config, budget, config.deadline());
    }

    /** @param deadline in place of the config's, where the caller named a shorter one */
    public LogicalCall(
            String client, String method, IdempotenceClientConfig config, RetryBudget budget, Duration deadline) {
        this.client = client;
        this.method = method;
        this.config = config;
        this.budget = budget;
        this.deadline = Deadline.in(deadline);
    }

    /** The first request says what the call is. */
    public void describe(@Nullable IdempotenceId callId, boolean safeMethod) {
        this.id = callId;
        this.safe = safeMethod;
    }

    public String client() {
        return client;
    }

    public String method() {
        return method;
    }

    public @Nullable IdempotenceId id() {
        return id;
    }

    public int attempts() {
        return attempts.get();
    }

    public Deadline deadline() {
        return deadline;
    }

    int requests() {
        return requests.get();
    }

    public void countRequest() {
        if (requests.getAndIncrement() == 0) {
            firstSentAt = Instant.now();
        }
        ScopeDoubt.Call within = withinScope.get();
        if (within != null) {
            within.sent(firstSentAt);
        }
    }

    /** The scope gives the ID. The doubt about an earlier call under it is this one's, and this one's is the next one's. */
    public void isWithin(IdempotenceScope giver) {
        // Two threads may begin the same call (hedging): it is one all the same.
        withinScope.compareAndSet(null, giver.doubt().newCall());
        learnDoubt();
    }

    /** Another call within the scope may be out, and may begin or end at any time. What was in doubt once, stays so for this call. */
    private void learnDoubt() {
        ScopeDoubt.Call within = withinScope.get();
        if (within == null) {
            return;
        }
        within.sinceOthers().ifPresent(since -> {
            inDoubt = true;
            Instant known = resumedFrom;
            if (known == null || since.isBefore(known)) {
                resumedFrom = since;
            }
        });
    }

    /** When the first request left, that of an earlier call in doubt if there was one; the opening of the call if none did. */
    public Instant firstSentAt() {
        Instant resumed = resumedFrom;
        return resumed != null ? resumed : firstSentAt;
    }

    /**
     * What a request with the ID adds to its {@code Prefer} headers, so that the server holds it while the first attempt runs.
     *
     * @param readTimeoutMillis that of the request, cut to what is left of the deadline
     * @param preferences those that the request has
     * @return empty if it adds nothing
     */
    public Optional<String> waitPreference(long readTimeoutMillis, Collection<String> preferences) {
        return WaitPreference.of(config.preferWait(), readTimeoutMillis, preferences);
    }

    IdempotenceClientConfig config() {
        return config;
    }

    RetryBudget budget() {
        return budget;
    }

    boolean isRepeatable() {
        return id != null || safe;
    }

    int nextAttempt() {
        return attempts.incrementAndGet();
    }

    void doubt() {
        inDoubt = true;
    }

    /** True if an earlier attempt, the call that this one resumes, or another one within its scope may have been carried out. */
    public boolean isInDoubt() {
        learnDoubt();
        return inDoubt;
    }

    /** A redirect took it to another origin, which does not know its ID: sent again, by whomever, it could be carried out twice. */
    void leaveWithoutId() {
        leftWithoutId = true;
        ScopeDoubt.Call within = withinScope.get();
        if (within != null) {
            within.leftWithoutId();
        }
    }

    /** True if it must not be sent again, as another origin got it without its ID. */
    public boolean hasLeftWithoutId() {
        return leftWithoutId;
    }

    /** The operation itself has answered: it knows the ID, whatever becomes of that answer on its way to the caller. */
    void answered() {
        answered = true;
    }

    @Nullable
    Throwable lastFailure() {
        return lastFailure;
    }

    /** It came to an end, or a run of it did: whoever runs it again may end it in another way. */
    public void ended(Result how, @Nullable Throwable failure) {
        result = how;
        lastFailure = failure;
    }

    /** A layer of the call begins: the proxy, or a run of the retry loop below it. */
    public void enter() {
        running.incrementAndGet();
    }

    /** A layer of the call ends. The last one to end tells the listener: a run may end after its proxy gave up on it. */
    public void exit() {
        if (running.decrementAndGet() > 0) {
            return;
        }
        Result how = result;
        if (how == null) {
            return;
        }
        ScopeDoubt.Call within = withinScope.get();
        if (within != null && (inDoubt || how == Result.UNKNOWN)) {
            within.endedInDoubt();
        } else if (within != null && !answered) {
            within.notCarriedOut();
        }
        if (published.compareAndSet(false, true)) {
            publish(how);
        }
    }

    private void publish(Result how) {
        IdempotenceClientListener listener = config.listener().orElse(null);
        if (listener == null && how != Result.UNKNOWN && !LOG.isDebugEnabled()) {
            return;
        }
        Duration took = Duration.ofNanos(System.nanoTime() - openedAt);
        IdempotenceClientEvent event = new IdempotenceClientEvent(
                client, method, how, id, attempts.get(), requests.get(), took, budget.available());
        if (how == Result.UNKNOWN) {
            LOG.warn("{}: whether it was carried out is not known", event);
        }
        LOG.debug("{}, ID {}", event, id);
        tell(listener, told -> told.onCall(event));
    }

    /** @param waitMillis before the next attempt, or a negative number if there is none */
    void attempted(
            int number,
            Outcome outcome,
            Observation seen,
            int attemptRequests,
            int polls,
            long waitedNanos,
            long nanos,
            long waitMillis) {
        IdempotenceClientListener listener = config.listener().orElse(null);
        if (listener == null && !LOG.isDebugEnabled()) {
            return;
        }
        IdempotenceAttemptEvent event = new IdempotenceAttemptEvent(
                client,
                method,
                id,
                number,
                outcome.told(seen),
                seen.status(),
                attemptRequests,
                polls,
                Duration.ofNanos(waitedNanos),
                Duration.ofNanos(nanos),
                waitMillis < 0 ? null : Duration.ofMillis(waitMillis));
        LOG.debug("{}, ID {}", event, id);
        tell(listener, told -> told.onAttempt(event));
    }

    private static void tell(
            @Nullable IdempotenceClientListener listener, Consumer<IdempotenceClientListener> message) {
        if (listener != null) {
            try {
                message.accept(listener);
            } catch (Throwable e) {
                // An Error, too: a metrics library of the wrong version must not take a payment's answer away.
                LOG.warn("The IdempotenceClientListener threw; the call is not affected", e);
            }
        }
    }
}
