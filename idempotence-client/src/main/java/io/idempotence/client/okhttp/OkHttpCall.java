package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;
import static io.idempotence.http.IdempotenceHeaders.PREFER;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.ClientAdapter;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.WaitPreference;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import okhttp3.Headers;
import okhttp3.Interceptor.Chain;
import okhttp3.MediaType;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okhttp3.ResponseBody;
import org.jspecify.annotations.Nullable;

/** A logical call that is made through OkHttp, with an ID. Its attempts run one after the other, in one thread. */
final class OkHttpCall implements ClientAdapter {
    /** The longest time until a cancelled call stops waiting. */
    private static final long LONGEST_SLEEP_MILLIS = 50;

    /** The time that the watchdog needs to end the call, with the call's own exception, before OkHttp ends it. */
    private static final long CALL_TIMEOUT_MARGIN_MILLIS = 100;

    /** The names of headers that OkHttp accepts from a caller. It takes others from a server. */
    private static final Pattern TOKEN = Pattern.compile("[!-~]+");

    private final Chain chain;
    private final ClientOperation operation;
    private final CallContext context;
    private final CallMemory memory;
    private final CallIdentity identity;
    private final WireInterceptor wire;
    private final Watchdog watchdog;
    private final LogicalCall logical;
    private @Nullable RepeatableBody body;
    private volatile @Nullable Watch watch;

    OkHttpCall(
            Chain chain,
            ClientOperation operation,
            CallContext context,
            CallMemory memory,
            WireInterceptor wire,
            Watchdog watchdog) {
        this.chain = chain;
        this.operation = operation;
        this.context = context;
        this.memory = memory;
        this.identity =
                new CallIdentity(operation, () -> memory.name(chain.request()), context.caller(), memory.history());
        this.wire = wire;
        this.watchdog = watchdog;
        this.logical = new LogicalCall(operation, identity, deadline(chain, operation.config()));
    }

    LogicalCall logical() {
        return logical;
    }

    /** Whether the call was cancelled, or the watchdog has begun to cancel it. */
    private boolean isCanceled() {
        Watch watched = watch;
        return chain.call().isCanceled() || (watched != null && watched.isAborted());
    }

    private static Duration deadline(Chain chain, IdempotenceClientConfig config) {
        long callTimeout = TimeUnit.NANOSECONDS.toMillis(chain.call().timeout().timeoutNanos());
        if (callTimeout == 0) {
            return config.deadline();
        }
        Duration own = Duration.ofMillis(callTimeout - Math.min(CALL_TIMEOUT_MARGIN_MILLIS, callTimeout / 2));
        return own.compareTo(config.deadline()) < 0 ? own : config.deadline();
    }

    /** Called when the call has ended. Keeps what was sent of the body, for an interceptor in front that proceeds again. */
    void ended() {
        memory.keep(body);
    }

    @Override
    public @Nullable Object send(int attempt, Observation seen) throws IOException {
        String decided = identity.line();
        String header = decided == null ? describe(chain.request()) : decided;
        checkWanted();
        Chain clipped = clip(chain, logical.deadline());
        Request request = prepared(header, attempt, clipped, seen);
        logical.countRequest();
        Watch watched = watchdog.watch(logical.deadline(), Thread.currentThread());
        watch = watched;
        watched.exit(chain.call()::cancel);
        Response response;
        try {
            OkHttpExchange sent = new OkHttpExchange(wire.redirects(), seen, logical, identity, body);
            response = wire.send(sent, clipped, request);
        } catch (IOException e) {
            throw watched.reason(e);
        } finally {
            watched.ended();
        }
        if (isCanceled()) {
            // OkHttp would throw in place of the response, which reads as "not sent".
            response.close();
            IOException canceled = new IOException("Canceled");
            seen.failed(canceled);
            seen.mustNotBeSentAgain();
            throw canceled;
        }
        return response;
    }

    /**
     * Chooses the ID of the call, from its first request.
     *
     * @return the line of the ID
     */
    private String describe(Request request) throws IOException {
        List<String> given = request.headers(IDEMPOTENCY_KEY);
        byte @Nullable [] content = content(request, given);
        Supplier<String> path = () -> pathAndQuery(request);
        String line = checked(() -> identity.decide(request.method(), given, request.method(), path, () -> content));
        logical.describe(path, this::bodyHash);
        return Objects.requireNonNull(line, "this call carries an ID");
    }

    /** Takes the body. Returns its content if that is known before it is sent. */
    private byte @Nullable [] content(Request request, List<String> given) throws IOException {
        try {
            checkWanted();
            RequestBody source = request.body();
            if (source == null) {
                return null;
            }
            RepeatableBody taken = memory.body(source);
            body = taken;
            taken.checkWritable();
            return context.caller().inbound() == null || isMultipart(taken.type())
                    ? null
                    : taken.content(this::checkWanted);
        } catch (IOException | RuntimeException e) {
            // Nothing is sent. An earlier call in doubt stays in doubt.
            checked(() -> {
                identity.keepDoubt(request.method(), !given.isEmpty(), given);
                return null;
            });
            throw e;
        }
    }

    /**
     * Makes a decision before anything is sent. Its failure becomes an {@link IOException}, because anything else would end a thread of the
     * dispatcher.
     */
    private static <T extends @Nullable Object> T checked(Supplier<T> decision) throws NotSendableException {
        try {
            return decision.get();
        } catch (RuntimeException e) {
            throw new NotSendableException(e);
        }
    }

    private static String pathAndQuery(Request request) {
        String query = request.url().encodedQuery();
        return request.url().encodedPath() + (query == null ? "" : "?" + query);
    }

    /** The hash of the body; null if its content is unknown. Most bodies are known only after they were sent. */
    private @Nullable Integer bodyHash() {
        RepeatableBody sent = body;
        return sent == null ? Integer.valueOf(0) : sent.contentHash();
    }

    /** A multipart body has a random boundary. */
    private static boolean isMultipart(@Nullable MediaType type) {
        return type != null && type.type().equals("multipart");
    }

    private Request prepared(String line, int attempt, Chain clipped, Observation seen) {
        Request request = chain.request();
        Request.Builder prepared = request.newBuilder();
        RepeatableBody sent = body;
        if (sent != null) {
            prepared.method(request.method(), sent.sentBy(seen, this::isGivenUp));
        }
        prepared.header(IDEMPOTENCY_KEY, line).header(IDEMPOTENCY_ATTEMPT, Integer.toString(attempt));
        WaitPreference.of(operation.config().preferWait(), clipped.readTimeoutMillis(), request.headers(PREFER))
                .ifPresent(wait -> prepared.addHeader(PREFER, wait));
        return prepared.build();
    }

    private boolean isGivenUp() {
        return isCanceled() || logical.deadline().isOver();
    }

    /** Throws OkHttp's own exception if the call was cancelled, its deadline is over, or its thread is interrupted. */
    private void checkWanted() throws IOException {
        if (isCanceled()) {
            throw new IOException("Canceled");
        }
        if (logical.deadline().isOver()) {
            throw new InterruptedIOException("timeout");
        }
        if (Thread.currentThread().isInterrupted()) {
            throw new InterruptedIOException("interrupted");
        }
    }

    /** Cuts the timeouts to what is left. */
    private static Chain clip(Chain chain, Deadline deadline) {
        int left = (int) Math.min(Integer.MAX_VALUE, deadline.millisLeft());
        return chain.withConnectTimeout((int) Deadline.clip(chain.connectTimeoutMillis(), left), TimeUnit.MILLISECONDS)
                .withReadTimeout((int) Deadline.clip(chain.readTimeoutMillis(), left), TimeUnit.MILLISECONDS)
                .withWriteTimeout((int) Deadline.clip(chain.writeTimeoutMillis(), left), TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean pause(long millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        for (long left = millis; left > 0 && !isCanceled(); ) {
            if (!ClientAdapter.super.pause(Math.min(left, LONGEST_SLEEP_MILLIS))) {
                return false;
            }
            left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        }
        return !isCanceled();
    }

    @Override
    public boolean returnsErrors() {
        return true;
    }

    @Override
    public @Nullable Object bodiless(Observation seen) {
        if (isCanceled()) {
            // OkHttp would throw in place of the response.
            return null;
        }
        Headers.Builder headers = new Headers.Builder();
        seen.headers().forEach((name, lines) -> {
            if (!HeaderLines.isOfBody(name) && TOKEN.matcher(name).matches()) {
                lines.forEach(line -> headers.addUnsafeNonAscii(name, line));
            }
        });
        return new Response.Builder()
                .request(chain.request())
                .protocol(Protocol.HTTP_1_1)
                .code(seen.status())
                .message("")
                .headers(headers.build())
                .body(ResponseBody.create(new byte[0], null))
                .build();
    }

    @Override
    public Throwable refused(Refusal refusal, Observation seen, Throwable cause) {
        return new OkHttpRequestRefusedException(refusal, logical.id(), cause);
    }

    @Override
    public Throwable unknown(Observation seen, Throwable cause) {
        Request request = chain.request();
        return new OkHttpOutcomeUnknownException(
                logical.unknown(request.method() + " " + request.url().redact()),
                Objects.requireNonNull(logical.id(), "this call has no ID yet"),
                logical.attempts(),
                logical.firstSentAt(),
                cause);
    }
}
