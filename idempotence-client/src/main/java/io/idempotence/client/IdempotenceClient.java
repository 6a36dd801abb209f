package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope.Work;
import java.time.Instant;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Asks later what became of a call: sends it again under the ID it had.
 *
 * <p>The ID is that of an {@link OutcomeUnknown}, or one that {@link IdempotenceScope#saving} stored before a crash. The call
 * must be the same: the same method of the same client with the same arguments, or the server half refuses it as {@code
 * key-reused}. If the first one was carried out, its answer comes back; if not, it is carried out now; in either case once.
 *
 * <p>What says nothing about the first one (no connection, 401, 503, most refusals, an interceptor, a body that cannot be
 * written, a circuit breaker of Resilience4j around a Feign client) leaves it as unknown as it was: the call ends with an {@link
 * OutcomeUnknown} again, and not as it would if it were made for the first time.
 *
 * <p>A call whose ID is a header argument must have this very ID there; with another one it ends in an {@link
 * IllegalStateException}, and nothing is sent.
 *
 * <p>The call is one that takes its ID in this thread: a Feign call, also one that returns a future, or OkHttp's {@code execute}.
 * With OkHttp's {@code enqueue}, use {@link IdempotenceScope#with(IdempotenceId, Work)}. That knows nothing of an earlier call,
 * so two things are the caller's then: a failure to send says "not sent" of this request only, and nothing is refused when the
 * server half may have forgotten the ID.
 *
 * <p>What is in front of the client half and throws without asking it ends the call with what it threw: an OkHttp interceptor
 * that was added before, anything around the Feign proxy, an {@code Error}. That says nothing about the first call either.
 */
public final class IdempotenceClient {
    private IdempotenceClient() {}

    /**
     * Makes a call again under its ID, if the server half can still know it.
     *
     * @param id the call's ID
     * @param firstSentAt when it was first sent, or shortly before: {@link OutcomeUnknown#firstSentAt()}, or the time at which
     *     the ID was saved
     * @param call makes the same call again, and no other that carries an ID
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code call} returns
     * @throws X what {@code call} throws; again an {@link OutcomeUnknown} if the doubt is still there
     * @throws IllegalStateException if {@code call} returned without a call that carries an ID, or (from the call, with nothing
     *     sent) if {@link IdempotenceClientConfig#serverRetention()} will be over before its deadline: the server half may have
     *     forgotten the ID and would carry the call out again, so only the business data can tell
     */
    public static <T extends @Nullable Object, X extends Throwable> T resume(
            IdempotenceId id, Instant firstSentAt, Work<T, X> call) throws X {
        IdempotenceScope scope = IdempotenceScope.resuming(id, firstSentAt);
        T result = IdempotenceScope.inside(scope, Objects.requireNonNull(call, "call"));
        if (!scope.isTaken()) {
            throw new IllegalStateException("nothing was asked: no call that carries an ID was made in this thread;"
                    + " make the same call again, with the same client");
        }
        return result;
    }
}
