package io.idempotence.client.internal.call;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.internal.call.RepeatWarning.UnknownCall;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.scope.ScopeHistory.HandlerFailure;
import io.idempotence.internal.Causes;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * One call of a client method by the application, with the state that its attempts share. It may move between threads, and retries around
 * the client half may run it again.
 */
public final class LogicalCall {
    private static final int MOST_SUPPRESSED = 8;

    private final ClientOperation operation;
    private final CallIdentity identity;
    private final Deadline deadline;
    private final long openedAt = System.nanoTime();
    private final AtomicInteger attempts = new AtomicInteger();
    private final AtomicInteger requests = new AtomicInteger();
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicBoolean published = new AtomicBoolean();

    private volatile boolean givenUp;
    private volatile @Nullable IdempotenceClientListener listener;
    private volatile @Nullable Result result;
    private volatile @Nullable Throwable lastFailure;
    private volatile @Nullable Content content;
    private volatile @Nullable UnknownCall maybeRepeated;

    /** The first request of the call, by which a repetition under another ID is recognised. */
    private record Content(Supplier<String> url, Supplier<@Nullable Integer> bodyHash) {}

    public LogicalCall(ClientOperation operation, CallIdentity identity, Duration deadline) {
        this.operation = operation;
        this.identity = identity;
        this.deadline = Deadline.in(deadline);
    }

    public @Nullable IdempotenceId id() {
        return identity.id();
    }

    /** Whether it is decided that the call carries no ID. */
    boolean isPlain() {
        return identity.isPlain();
    }

    public int attempts() {
        return attempts.get();
    }

    /** The deadline; {@link Deadline#NEVER} for a call without an ID. */
    public Deadline deadline() {
        return isPlain() ? Deadline.NEVER : deadline;
    }

    int requests() {
        return requests.get();
    }

    /** @throws CancellationException if the call carries an ID, and a layer gave it up before its first request */
    public void countRequest() {
        // Checked before the count, so that a concurrent run does not take this refused request for a sent one. A run
        // that passes this check just before the call is given up has entered the call, and isHiddenBy then sees it as
        // running.
        if (givenUp && id() != null && requests.get() == 0) {
            throw new CancellationException(
                    "a layer around this call, such as a time limiter, ended it before anything was sent");
        }
        requests.incrementAndGet();
        identity.history().sent();
    }

    /** When the first request of this call, or of an earlier call in doubt, was sent; the start of this call if nothing was sent. */
    public Instant firstSentAt() {
        return identity.history().firstSentAt();
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
        int number = attempts.incrementAndGet();
        if (number == 1) {
            IdempotenceClientListener common = config().listener().orElse(null);
            callListener(common, one -> listener = one.ofCall(operation.client(), operation.method()));
        }
        return number;
    }

    /** The listener of this call, or of all calls before its first attempt. */
    private @Nullable IdempotenceClientListener listener() {
        IdempotenceClientListener own = listener;
        return own != null ? own : config().listener().orElse(null);
    }

    /** Sends a request. The listener prepares this thread before it, and restores the thread after it. */
    @Nullable
    Object send(ClientAdapter adapter, int attempt, Observation seen) throws Throwable {
        Runnable leave = enterRequest();
        try {
            return adapter.send(attempt, seen);
        } finally {
            callListener(listener, any -> leave.run());
        }
    }

    /** Releases a value that the caller will not get. A failure to do so does not affect the call. */
    void discard(ClientAdapter adapter, @Nullable Object value) {
        try {
            adapter.discard(value);
        } catch (IOException e) {
            // Nobody reads this response any more.
        } catch (RuntimeException e) {
            log().warn("a response could not be closed; the call is not affected", e);
        }
    }

    private Runnable enterRequest() {
        Runnable[] leave = {() -> {}};
        callListener(listener, own -> leave[0] = own.enterRequest());
        return leave[0];
    }

    /** Called when no layer around the attempts waits any longer. If the call has an ID and nothing was sent so far, nothing will be. */
    public void giveUp() {
        givenUp = true;
    }

    void doubt() {
        identity.history().doubt();
    }

    /** Whether an earlier attempt, the call that this one resumes, or another one within its scope may have been executed. */
    public boolean isInDoubt() {
        return identity.history().isInDoubt();
    }

    /** Records that the operation itself responded. It then has the ID, even if the response is lost on its way to the caller. */
    void responded() {
        identity.history().responded();
    }

    /** Whether the operation itself has responded, to this run of the call or to an earlier one. */
    boolean hasResponded() {
        return identity.history().hasResponded();
    }

    void failed(HandlerFailure failure) {
        identity.history().failed(failure);
    }

    /** The last failure of the handler, which may have taken effect; null if there is none. */
    public @Nullable HandlerFailure handlerFailure() {
        return identity.history().failure();
    }

    /**
     * Returns the exception of the handler's last failure, with {@code later} suppressed in it. A call ends with that exception if nothing
     * later is known about the operation. Returns {@code later} if the handler has not failed.
     */
    public Throwable orHandlerFailure(Throwable later) {
        HandlerFailure known = handlerFailure();
        Throwable thrown = known == null ? null : known.thrown();
        if (thrown == null) {
            return later;
        }
        // In a scope, many calls may end with the same exception.
        if (Causes.of(later).noneMatch(cause -> cause == thrown) && thrown.getSuppressed().length < MOST_SUPPRESSED) {
            thrown.addSuppressed(later);
        }
        return thrown;
    }

    /**
     * Whether {@code thrown} would hide from the caller that this call may have been executed: a layer around the attempts ended the call,
     * and the unknown outcome of this call is neither {@code thrown} nor one of its causes.
     *
     * @param refusal whether {@code thrown} is such a layer's refusal to make the call, or to run it again
     */
    public boolean isHiddenBy(Throwable thrown, boolean refusal) {
        if (id() == null || isUnknownIn(thrown)) {
            return false;
        }
        if (attempts.get() == 0) {
            return isInDoubt();
        }
        boolean inFlight = running.get() > 1 && !hasResponded();
        return inFlight || isLostBy(thrown) || isUnknown() || (refusal && (isInDoubt() || hasResponded()));
    }

    /** Whether a layer that stopped waiting threw {@code thrown}, perhaps just after the call had ended with another result. */
    public boolean isLostBy(Throwable thrown) {
        boolean stoppedWaiting = LayerFailures.causes(thrown)
                .anyMatch(cause -> cause instanceof TimeoutException
                        || cause instanceof InterruptedException
                        || cause instanceof CancellationException);
        return stoppedWaiting && requests.get() > 0 && Causes.of(thrown).noneMatch(cause -> cause == lastFailure);
    }

    /** Whether {@code thrown} or one of its causes is an unknown outcome with the ID of this call. */
    public boolean isUnknownIn(Throwable thrown) {
        return Causes.of(thrown)
                .anyMatch(cause ->
                        cause instanceof OutcomeUnknown unknown && unknown.id().equals(id()));
    }

    /** Whether the call has ended with an unknown outcome. */
    public boolean isUnknown() {
        return result == Result.UNKNOWN;
    }

    @Nullable
    Throwable lastFailure() {
        return lastFailure;
    }

    /** Records the end of the call, or of one run of it. Another run may replace it. */
    public void ended(Result how, @Nullable Throwable failure) {
        result = how;
        lastFailure = failure;
    }

    /**
     * Records the first request, after its ID was decided. Warns if the call repeats a call of unknown outcome under a new ID. If the body
     * is known only after it is sent, the warning comes at the end of the call.
     *
     * @param url with or without the address of the target, but in the same form for all calls of the operation
     * @param bodyHash null if the content of the body is not known, or not known yet
     */
    public void describe(Supplier<String> url, Supplier<@Nullable Integer> bodyHash) {
        content = new Content(url, bodyHash);
        IdempotenceId id = id();
        if (id != null && identity.isGenerated()) {
            maybeRepeated = operation.repeats().before(id, url);
            warnOfRepetition();
        }
    }

    private void warnOfRepetition() {
        Content sent = content;
        UnknownCall before = maybeRepeated;
        if (before == null || sent == null) {
            return;
        }
        Integer bodyHash = sent.bodyHash.get();
        if (bodyHash != null) {
            maybeRepeated = null;
            operation.repeats().sends(bodyHash, before);
        }
    }

    private void remember(Result how) {
        IdempotenceId id = id();
        Content sent = content;
        if (id == null || sent == null || requests.get() == 0) {
            return;
        }
        if (how != Result.UNKNOWN) {
            operation.repeats().endedKnown(id);
            return;
        }
        Integer bodyHash = sent.bodyHash.get();
        if (bodyHash != null) {
            operation.repeats().endedUnknown(id, sent.url.get(), bodyHash);
        }
    }

    /** The message of the unknown outcome of a call with this name. */
    public String unknown(String name) {
        return "the outcome of " + name + " is unknown after " + attempts
                + (attempts.get() == 1 ? " attempt" : " attempts")
                + ": it may have been executed; call again with the same ID";
    }

    /** Enters a layer of the call: the proxy, or a run of the retry loop below it. */
    public void enter() {
        running.incrementAndGet();
    }

    /** Leaves a layer of the call. The last one publishes the end, because a run may end after its proxy gave up on it. */
    public void exit() {
        if (running.decrementAndGet() > 0) {
            return;
        }
        warnOfRepetition();
        Result how = result;
        if (how == null) {
            return;
        }
        identity.history().ended(how == Result.UNKNOWN);
        if (published.compareAndSet(false, true)) {
            remember(how);
            publish(how);
        }
    }

    private void publish(Result how) {
        IdempotenceClientListener listening = listener();
        if (listening == null && how != Result.UNKNOWN && !log().isDebugEnabled()) {
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
        callListener(listening, one -> one.onCall(event));
    }

    /** @param waitMillis the wait before the next attempt, or a negative number if there is none */
    void attempted(
            int number,
            RequestEnd ended,
            int attemptRequests,
            int polls,
            long waitedNanos,
            long nanos,
            long waitMillis) {
        IdempotenceClientListener listening = listener();
        if (listening == null && !log().isDebugEnabled()) {
            return;
        }
        int status = ended.seen().status();
        IdempotenceClientAttemptEvent event = new IdempotenceClientAttemptEvent(
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
        callListener(listening, one -> one.onAttempt(event));
    }

    private void callListener(
            @Nullable IdempotenceClientListener listening, Consumer<IdempotenceClientListener> message) {
        if (listening != null) {
            try {
                message.accept(listening);
            } catch (Throwable e) {
                // Also an Error: a metrics library of the wrong version must not take a payment's response away.
                log().warn("an IdempotenceClientListener threw; the call is not affected", e);
            }
        }
    }
}
