package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;
import static io.idempotence.http.IdempotenceHeaders.PREFER;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.retry.Deadline;
import io.idempotence.client.retry.Exchange;
import io.idempotence.client.retry.HttpMethods;
import io.idempotence.client.retry.LogicalCall;
import io.idempotence.client.retry.Observation;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import okhttp3.Interceptor.Chain;
import okhttp3.MediaType;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;

/** A logical call made through OkHttp. Its attempts run one after the other, in one thread. */
final class OkHttpCall implements Exchange {
    private static final IdempotencyKeyHeader GRAMMAR = IdempotencyKeyHeader.standard();

    /** How long a cancelled call may go on waiting. */
    private static final long LONGEST_SLEEP_MILLIS = 50;

    /** What the call needs to end by itself, with its own exception, before OkHttp ends it. */
    private static final long CALL_TIMEOUT_MARGIN_MILLIS = 50;

    private final Chain chain;
    private final OkHttpTarget target;
    private final Caller caller;
    private final WireInterceptor wire;
    private final LogicalCall logical;
    private @Nullable Request first;
    private @Nullable String header;

    OkHttpCall(Chain chain, OkHttpTarget target, Caller caller, WireInterceptor wire) {
        this.chain = chain;
        this.target = target;
        this.caller = caller;
        this.wire = wire;
        this.logical = target.open(deadline(chain, target.config()));
    }

    LogicalCall logical() {
        return logical;
    }

    boolean isCanceled() {
        return chain.call().isCanceled();
    }

    private static Duration deadline(Chain chain, IdempotenceClientConfig config) {
        long callTimeout = TimeUnit.NANOSECONDS.toMillis(chain.call().timeout().timeoutNanos());
        if (callTimeout == 0) {
            return config.deadline();
        }
        Duration own = Duration.ofMillis(callTimeout - Math.min(CALL_TIMEOUT_MARGIN_MILLIS, callTimeout / 2));
        return own.compareTo(config.deadline()) < 0 ? own : config.deadline();
    }

    @Override
    public @Nullable Object send(int attempt, Observation seen) throws IOException {
        Request request = first;
        if (request == null) {
            request = describe(chain.request());
            first = request;
        }
        Chain clipped = clip(chain, logical.deadline());
        logical.countRequest();
        return new OkHttpAttempt(wire, seen, logical, header, false)
                .send(clipped, prepared(request, attempt, clipped, seen));
    }

    /** The first request says what the call is. */
    private Request describe(Request request) throws IOException {
        IdempotenceClientConfig config = target.config();
        boolean safe = HttpMethods.isSafe(request.method());
        List<String> given = request.headers(IDEMPOTENCY_KEY);
        boolean carriesId = !safe
                && (!given.isEmpty()
                        || config.methods().contains(request.method().toUpperCase(Locale.ROOT)));
        if (!carriesId) {
            logical.describe(null, safe);
            return given.isEmpty()
                    ? request
                    : request.newBuilder().removeHeader(IDEMPOTENCY_KEY).build();
        }
        RequestBody body = request.body();
        Request frozen = body == null
                ? request
                : request.newBuilder()
                        .method(request.method(), frozen(body, request, given))
                        .build();
        IdempotenceId id;
        try {
            id = given.isEmpty() ? ownId(frozen) : givenId(given, frozen);
        } catch (RuntimeException e) {
            // Nothing was sent, and anything but an IOException would end a thread of the dispatcher.
            throw new NotSendableException(e);
        }
        header = given.isEmpty() ? GRAMMAR.format(id, config.headerStyle()) : given.get(0);
        logical.describe(id, false);
        return frozen;
    }

    private RequestBody frozen(RequestBody body, Request request, List<String> given) throws IOException {
        try {
            return Bodies.freeze(body);
        } catch (IOException | RuntimeException e) {
            notMade(request, given);
            throw e;
        }
    }

    /** Its body cannot be written. Of an earlier call in doubt, that says nothing. */
    private void notMade(Request request, List<String> given) throws NotSendableException {
        IdempotenceScope scope = caller.scope();
        if (scope == null || scope.doubt().since().isEmpty()) {
            return;
        }
        try {
            if (given.isEmpty() || scope.includes(GRAMMAR.parse(given).orElseThrow())) {
                logical.describe(idOf(scope, request, null), false);
            }
        } catch (RuntimeException e) {
            throw new NotSendableException(e);
        }
    }

    private IdempotenceId givenId(List<String> lines, Request request) throws IOException {
        IdempotenceId id = GRAMMAR.parse(lines).orElseThrow();
        IdempotenceScope scope = caller.scope();
        return scope != null && scope.includes(id) ? ownId(request) : id;
    }

    private IdempotenceId ownId(Request request) throws IOException {
        RequestBody body = request.body();
        byte @Nullable [] bytes =
                caller.inbound() == null || body == null || isMultipart(body) ? null : Bodies.bytes(body);
        IdempotenceScope scope = caller.scope();
        return scope == null ? usualId(request, bytes) : idOf(scope, request, bytes);
    }

    private IdempotenceId idOf(IdempotenceScope scope, Request request, byte @Nullable [] bytes) {
        String url = request.url()
                .newBuilder()
                .username("")
                .password("")
                .query(null)
                .fragment(null)
                .build()
                .toString();
        IdempotenceId id = scope.idFor(request.method() + " " + url, target.config(), () -> usualId(request, bytes));
        logical.isWithin(scope);
        return id;
    }

    private IdempotenceId usualId(Request request, byte @Nullable [] body) {
        InboundRequest inbound = caller.inbound();
        if (inbound == null) {
            return target.config().generator().generateId();
        }
        String query = request.url().encodedQuery();
        String path = request.url().encodedPath() + (query == null ? "" : "?" + query);
        return inbound.idOfNextCall(target.client(), request.method(), path, body);
    }

    /** It has a random boundary in it. */
    private static boolean isMultipart(RequestBody body) {
        MediaType type = body.contentType();
        return type != null && type.type().equals("multipart");
    }

    private Request prepared(Request request, int attempt, Chain clipped, Observation seen) {
        Request.Builder prepared = request.newBuilder();
        RequestBody body = request.body();
        if (body != null && Bodies.isOnce(body)) {
            prepared.method(request.method(), Bodies.watched(body, seen));
        }
        String line = header;
        if (line != null) {
            prepared.header(IDEMPOTENCY_KEY, line).header(IDEMPOTENCY_ATTEMPT, Integer.toString(attempt));
            logical.waitPreference(clipped.readTimeoutMillis(), request.headers(PREFER))
                    .ifPresent(wait -> prepared.addHeader(PREFER, wait));
        }
        return prepared.build();
    }

    /** 0 means no limit to OkHttp, so at least a millisecond stays. */
    private static Chain clip(Chain chain, Deadline deadline) {
        int left = (int) Math.min(Integer.MAX_VALUE, Math.max(1, deadline.millisLeft()));
        return chain.withConnectTimeout(clip(chain.connectTimeoutMillis(), left), TimeUnit.MILLISECONDS)
                .withReadTimeout(clip(chain.readTimeoutMillis(), left), TimeUnit.MILLISECONDS)
                .withWriteTimeout(clip(chain.writeTimeoutMillis(), left), TimeUnit.MILLISECONDS);
    }

    private static int clip(int timeout, int left) {
        return timeout <= 0 ? left : Math.min(timeout, left);
    }

    @Override
    public boolean pause(long millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        for (long left = millis; left > 0 && !isCanceled(); ) {
            if (!Exchange.super.pause(Math.min(left, LONGEST_SLEEP_MILLIS))) {
                return false;
            }
            left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        }
        return !isCanceled();
    }

    @Override
    public void discard(@Nullable Object value) {
        if (value instanceof Response response) {
            response.close();
        }
    }

    @Override
    public Throwable failureOf(@Nullable Object value) {
        return value instanceof Response response
                ? new ErrorAnswerException(response.code())
                : new IllegalStateException("there was neither an answer nor a failure");
    }

    @Override
    public Throwable refused(Refusal refusal, Observation seen, Throwable cause) {
        return new RequestRefusedException(refusal, logical.id(), cause);
    }

    @Override
    public Throwable unknown(Observation seen, Throwable cause) {
        IdempotenceId id = logical.id();
        if (id == null) {
            throw new IllegalStateException("only calls with an ID end in the unknown");
        }
        int attempts = logical.attempts();
        String advice = logical.hasLeftWithoutId()
                ? "it was redirected to another origin, which does not know its ID, so a call with the same ID may carry it out again"
                : "call again with the same ID";
        return new OutcomeUnknownException(
                "it is not known whether " + chain.request().method() + " "
                        + chain.request().url().redact() + " was carried out, after " + attempts
                        + (attempts == 1 ? " attempt; " : " attempts; ") + advice,
                id,
                attempts,
                logical.firstSentAt(),
                cause);
    }
}
