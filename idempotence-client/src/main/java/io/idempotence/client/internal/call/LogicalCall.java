package io.idempotence.client.internal.call;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceAttemptEvent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.WaitPreference;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.ScopeHistory;
import io.idempotence.internal.Causes;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
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

    private final AtomicBoolean identified = new AtomicBoolean();

    private volatile @Nullable IdempotenceId id;
    private volatile boolean plain;

    /** Of no scope until one gives it an ID. */
    private volatile ScopeHistory.Call history = ScopeHistory.ofOneCall().newCall();

    private volatile @Nullable Result result;
    private volatile @Nullable Throwable lastFailure;
    private volatile Consumer<Result> onEnd = how -> {};

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

    /**
     * The first request says what the call is.
     *
     * @param callId its ID; null for a call that carries none, and is as without this project: no retry, no deadline
     */
    public void describe(@Nullable IdempotenceId callId) {
        this.id = callId;
        this.plain = callId == null;
    }

    /** True once it is known that the call carries no ID. */
    boolean isPlain() {
        return plain;
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

    /** That of the config. A call without an ID has none. */
    public Deadline deadline() {
        return plain ? Deadline.NEVER : deadline;
    }

    int requests() {
        return requests.get();
    }

    public void countRequest() {
        requests.incrementAndGet();
        history.sent();
    }

    /**
     * The ID of this call: its caller's own, else its scope's, else the usual one. Within a scope, it begins in the doubt about
     * earlier calls under the ID, and its own doubt is the next one's.
     *
     * @param scope the scope it is made in, or null if there is none
     * @param name names the client and the method to the scope
     * @param own the ID in the caller's header, or null if there is none
     * @param usual makes the ID of a call without header and scope
     */
    public IdempotenceId identify(
            @Nullable CallScope scope,
            Supplier<String> name,
            @Nullable IdempotenceId own,
            Supplier<IdempotenceId> usual) {
        if (scope == null) {
            return own != null ? own : usual.get();
        }
        return identify(ScopeHistory.ofOneCall(), scope, name, own, usual);
    }

    /**
     * As above, for a call whose HTTP client may make it more than once.
     *
     * @param alone keeps ID and doubt where no scope does
     */
    public IdempotenceId identify(
            ScopeHistory alone,
            @Nullable CallScope scope,
            Supplier<String> name,
            @Nullable IdempotenceId own,
            Supplier<IdempotenceId> usual) {
        ScopeHistory.Call begun = scope == null
                ? alone.begin(since -> checkRetention(config, since), own, usual)
                : scope.begin(name.get(), since -> checkRetention(config, since), own, usual, alone);
        // Two threads may begin the same call (hedging): it is one all the same.
        if (identified.compareAndSet(false, true)) {
            history = begun;
        }
        return begun.id();
    }

    /** An ID that the server half has forgotten would be a new one to it. */
    public static void checkRetention(IdempotenceClientConfig config, Instant firstSentAt) {
        Instant forgotten = firstSentAt.plus(config.serverRetention());
        if (Instant.now().plus(config.deadline()).isAfter(forgotten)) {
            throw new IllegalStateException("this ID was first sent at " + firstSentAt
                    + ", and the server half may forget it at " + forgotten
                    + " (idempotence.client.server-retention), so the call could be executed again;"
                    + " look into the business data");
        }
    }

    /** When the first request left, that of an earlier call in doubt if there was one; the opening of the call if none did. */
    public Instant firstSentAt() {
        return history.firstSentAt();
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

    int nextAttempt() {
        return attempts.incrementAndGet();
    }

    void doubt() {
        history.doubt();
    }

    /** True if an earlier attempt, the call that this one resumes, or another one within its scope may have been executed. */
    public boolean isInDoubt() {
        return history.isInDoubt();
    }

    /** The operation itself has answered: it knows the ID, whatever becomes of that response on its way to the caller. */
    void answered() {
        history.answered();
    }

    /**
     * Whether a caller who sees {@code thrown} would not learn that this call may have been executed: a layer around the attempts
     * ended it, and neither it nor what it ended with is an unknown outcome.
     *
     * @param refusal {@code thrown} is the refusal of such a layer to make the call, or another run of it
     */
    public boolean isHiddenBy(Throwable thrown, boolean refusal) {
        if (id == null || Causes.of(thrown).anyMatch(OutcomeUnknown.class::isInstance)) {
            return false;
        }
        if (attempts.get() == 0) {
            return isInDoubt();
        }
        boolean stillOut = running.get() > 1 && !history.isAnswered();
        return stillOut || result == Result.UNKNOWN || (refusal && (isInDoubt() || history.isAnswered()));
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

    /** @param listener is told how the call ended, in the thread that ends it, once */
    public void onEnd(Consumer<Result> listener) {
        onEnd = listener;
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
        history.ended(how == Result.UNKNOWN);
        if (published.compareAndSet(false, true)) {
            onEnd.accept(how);
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
                client, method, how, Optional.ofNullable(id), attempts.get(), requests.get(), took, budget.available());
        if (how == Result.UNKNOWN) {
            LOG.warn("{}: whether it was executed is not known", event);
        }
        LOG.debug("{}, ID {}", event, id);
        tell(listener, told -> told.onCall(event));
    }

    /** @param waitMillis before the next attempt, or a negative number if there is none */
    void attempted(
            int number,
            RequestEnd ended,
            int attemptRequests,
            int polls,
            long waitedNanos,
            long nanos,
            long waitMillis) {
        IdempotenceClientListener listener = config.listener().orElse(null);
        if (listener == null && !LOG.isDebugEnabled()) {
            return;
        }
        int status = ended.seen().status();
        IdempotenceAttemptEvent event = new IdempotenceAttemptEvent(
                client,
                method,
                Optional.ofNullable(id),
                number,
                ended.reported(),
                status == 0 ? OptionalInt.empty() : OptionalInt.of(status),
                attemptRequests,
                polls,
                Duration.ofNanos(waitedNanos),
                Duration.ofNanos(nanos),
                waitMillis < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(waitMillis)));
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
