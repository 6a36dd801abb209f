package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;
import static java.util.Objects.requireNonNull;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.CallLoop;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.ClientOperations;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.HttpMethods;
import io.idempotence.client.internal.http.HttpOrigin;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.scope.CallScope;
import java.io.IOException;
import java.io.InterruptedIOException;
import okhttp3.HttpUrl;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** The application interceptor that runs each call with an ID as a logical call. It works together with {@link WireInterceptor}. */
final class IdempotenceInterceptor implements Interceptor {
    private final ClientOperations operations;
    private final @Nullable String name;
    private final CallContexts contexts;
    private final WireInterceptor wire;
    private final Watchdog watchdog = new Watchdog(new CallThreads(), LoggerFactory.getLogger(IdempotentOkHttp.class));

    /** @param name the client's name; null if it is the host of the call's URL */
    IdempotenceInterceptor(
            IdempotenceClientConfig config, @Nullable String name, CallContexts contexts, WireInterceptor wire) {
        this.operations = new ClientOperations(config, LoggerFactory.getLogger(IdempotentOkHttp.class));
        this.name = name;
        this.contexts = contexts;
        this.wire = wire;
    }

    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        if (HttpMethods.isSafe(request.method())) {
            return withoutId(chain, withoutKey(request));
        }
        CallContexts.TrackedCall tracked = contexts.of(chain.call());
        CallContext context = CallContext.current(chain.call().request()).or(tracked.context());
        OuterAttempt above = context.outerAttempt();
        if (above != null) {
            // The request is already an attempt of the Feign half, which gives it the ID and retries it.
            return passedOn(chain, above);
        }
        ClientOperation operation = operation(request);
        if (!CallIdentity.carriesId(operation, request.method(), request.header(IDEMPOTENCY_KEY) != null)) {
            return withoutId(chain, request);
        }
        CallMemory memory = tracked.memory(request, request.headers(IDEMPOTENCY_KEY));
        OkHttpCall call = new OkHttpCall(chain, operation, context, memory, wire, watchdog);
        try {
            return run(call, operation.retry());
        } catch (IOException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            // Kotlin declares no checked exceptions: OkHttp throws this one while it waits for a connection.
            throw e instanceof InterruptedException ? interrupted(e) : new IOException(e);
        } finally {
            call.ended();
        }
    }

    private ClientOperation operation(Request request) {
        HttpUrl url = request.url();
        String client = name == null ? new HttpOrigin(url.scheme(), url.host(), url.port()).authority() : name;
        return operations.of(client, HttpMethods.label(request.method()), null);
    }

    /** Sends a request of a layer above, which gives the ID and retries. What OkHttp repeats by itself is reported to that layer. */
    private Response passedOn(Chain chain, OuterAttempt above) throws IOException {
        Observation seen = new Observation();
        if (above.seen().hasEarlierDoubt()) {
            seen.mayHaveBeenSentBefore();
        }
        try {
            OkHttpExchange passed = new OkHttpExchange(wire.redirects(), seen, above.call(), null, null);
            return wire.send(passed, chain, chain.request());
        } finally {
            above.seen().learnFrom(seen);
        }
    }

    private Request withoutKey(Request request) {
        return request.header(IDEMPOTENCY_KEY) == null
                        || !operation(request).config().enabled()
                ? request
                : request.newBuilder().removeHeader(IDEMPOTENCY_KEY).build();
    }

    /** Proceeds as without the client half. Calls made on the way are outside of the caller's scope. */
    private static Response withoutId(Chain chain, Request request) throws IOException {
        return CallScope.<Response, IOException>outside(() -> chain.proceed(request));
    }

    private static Response run(OkHttpCall call, Retry retry) throws Throwable {
        return CallScope.<Response, Throwable>outside(
                () -> (Response) requireNonNull(CallLoop.run(call.logical(), retry, call)));
    }

    private static IOException interrupted(Throwable cause) {
        InterruptedIOException ended = new InterruptedIOException("interrupted");
        ended.initCause(cause);
        return ended;
    }
}
