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
import io.idempotence.internal.Causes;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * One call of a client method by the application, and everything its attempts share. It outlives hops between threads and
 * retries by layers outside of ours.
 */
public final class LogicalCall {
    private final ClientOperation operation;
    private final CallIdentity identity;
    private final Deadline deadline;
    private final long openedAt = System.nanoTime();
    private final AtomicInteger attempts = new AtomicInteger();
    private final AtomicInteger requests = new AtomicInteger();
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicBoolean published = new AtomicBoolean();

    private volatile @Nullable Result result;
    private volatile @Nullable Throwable lastFailure;
    private volatile Consumer<Result> onEnd = how -> {};

    public LogicalCall(ClientOperation operation, CallIdentity identity, Duration deadline) {
        this.operation = operation;
        this.identity = identity;
        this.deadline = Deadline.in(deadline);
    }

    public @Nullable IdempotenceId id() {
        return identity.id();
    }

    /** True once it is known that the call carries no ID. */
    boolean isPlain() {
        return identity.isPlain();
    }

    public int attempts() {
        return attempts.get();
    }

    /** A call without an ID has none. */
    public Deadline deadline() {
        return isPlain() ? Deadline.NEVER : deadline;
    }

    int requests() {
        return requests.get();
    }

    public void countRequest() {
        requests.incrementAndGet();
        identity.history().sent();
    }

    /** When the first request left, that of an earlier call in doubt if there was one; the opening of the call if none did. */
    public Instant firstSentAt() {
        return identity.history().firstSentAt();
    }

    /**
     * What a request with the ID adds to its {@code Prefer} headers, so that the server holds it while the first attempt runs.
     *
     * @param readTimeoutMillis that of the request, cut to what is left of the deadline
     * @param preferences those that the request has
     * @return empty if it adds nothing
     */
    public Optional<String> waitPreference(long readTimeoutMillis, Collection<String> preferences) {
        return WaitPreference.of(config().preferWait(), readTimeoutMillis, preferences);
    }

    IdempotenceClientConfig config() {
        return operation.config();
    }

    Logger log() {
        return operation.log();
    }

    RetryBudget budget() {
        return operation.budget();
    }

    int nextAttempt() {
        return attempts.incrementAndGet();
    }

    void doubt() {
        identity.history().doubt();
    }

    /** True if an earlier attempt, the call that this one resumes, or another one within its scope may have been executed. */
    public boolean isInDoubt() {
        return identity.history().isInDoubt();
    }

    /** The operation itself has answered: it knows the ID, whatever becomes of that response on its way to the caller. */
    void answered() {
        identity.history().answered();
    }

    /**
     * Whether a caller who sees {@code thrown} would not learn that this call may have been executed: a layer around the attempts
     * ended it, and neither it nor what it ended with is an unknown outcome.
     *
     * @param refusal {@code thrown} is the refusal of such a layer to make the call, or another run of it
     */
    public boolean isHiddenBy(Throwable thrown, boolean refusal) {
        if (id() == null || Causes.of(thrown).anyMatch(OutcomeUnknown.class::isInstance)) {
            return false;
        }
        if (attempts.get() == 0) {
            return isInDoubt();
        }
        boolean stillOut = running.get() > 1 && !identity.history().isAnswered();
        return stillOut
                || result == Result.UNKNOWN
                || (refusal && (isInDoubt() || identity.history().isAnswered()));
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
        identity.history().ended(how == Result.UNKNOWN);
        if (published.compareAndSet(false, true)) {
            onEnd.accept(how);
            publish(how);
        }
    }

    private void publish(Result how) {
        IdempotenceClientListener listener = config().listener().orElse(null);
        if (listener == null && how != Result.UNKNOWN && !log().isDebugEnabled()) {
            return;
        }
        Duration took = Duration.ofNanos(System.nanoTime() - openedAt);
        IdempotenceClientEvent event = new IdempotenceClientEvent(
                operation.client(),
                operation.method(),
                how,
                Optional.ofNullable(id()),
                attempts.get(),
                requests.get(),
                took,
                budget().available());
        if (how == Result.UNKNOWN) {
            log().warn("{}: the outcome is unknown, the operation may have been executed", event);
        }
        log().debug("{}, ID {}", event, id());
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
        IdempotenceClientListener listener = config().listener().orElse(null);
        if (listener == null && !log().isDebugEnabled()) {
            return;
        }
        int status = ended.seen().status();
        IdempotenceAttemptEvent event = new IdempotenceAttemptEvent(
                operation.client(),
                operation.method(),
                Optional.ofNullable(id()),
                number,
                ended.reported(),
                status == 0 ? OptionalInt.empty() : OptionalInt.of(status),
                attemptRequests,
                polls,
                Duration.ofNanos(waitedNanos),
                Duration.ofNanos(nanos),
                waitMillis < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(waitMillis)));
        log().debug("{}, ID {}", event, id());
        tell(listener, told -> told.onAttempt(event));
    }

    private void tell(@Nullable IdempotenceClientListener listener, Consumer<IdempotenceClientListener> message) {
        if (listener != null) {
            try {
                message.accept(listener);
            } catch (Throwable e) {
                // An Error, too: a metrics library of the wrong version must not take a payment's response away.
                log().warn("The IdempotenceClientListener threw; the call is not affected", e);
            }
        }
    }
}
