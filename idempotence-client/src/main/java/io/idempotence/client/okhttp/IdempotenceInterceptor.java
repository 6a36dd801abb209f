package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.internal.call.CallLoop;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.HttpMethods;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.scope.CallScope;
import java.io.IOException;
import java.io.InterruptedIOException;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** The application interceptor that runs each call with an ID as a logical call. It works together with {@link WireInterceptor}. */
final class IdempotenceInterceptor implements Interceptor {
    private final OkHttpOperations operations;
    private final CallContexts contexts;
    private final WireInterceptor wire;
    private final Watchdog watchdog = new Watchdog(new CallThreads(), LoggerFactory.getLogger(IdempotentOkHttp.class));

    IdempotenceInterceptor(OkHttpOperations operations, CallContexts contexts, WireInterceptor wire) {
        this.operations = operations;
        this.contexts = contexts;
        this.wire = wire;
    }

    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        if (HttpMethods.isSafe(request.method())) {
            return withoutId(chain, withoutKey(request));
        }
        TrackedCall tracked = contexts.of(chain.call());
        CallContext context = CallContext.current(chain.call().request()).or(tracked.context());
        OuterAttempt above = context.outerAttempt();
        if (above != null) {
            // The request is already an attempt of the Feign half, which gives it the ID and retries it.
            return PassedRequest.send(chain, above, wire);
        }
        ClientOperation operation = operations.of(request);
        if (!operation.carriesId(request.method(), request.header(IDEMPOTENCY_KEY) != null)) {
            return withoutId(chain, request);
        }
        CallMemory memory = tracked.memory(request, request.headers(IDEMPOTENCY_KEY));
        OkHttpCall call = new OkHttpCall(chain, operation, context, memory, wire, watchdog);
        try {
            return run(call, operation.retry());
        } catch (ErrorResponseException e) {
            throw gaveUp(call, e);
        } catch (IOException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            // Kotlin declares no checked exceptions: OkHttp throws this one while it waits for a connection.
            throw e instanceof InterruptedException ? gaveUp(call, e) : new IOException(e);
        } finally {
            call.keepBody();
        }
    }

    private Request withoutKey(Request request) {
        return request.header(IDEMPOTENCY_KEY) == null
                        || !operations.of(request).config().enabled()
                ? request
                : request.newBuilder().removeHeader(IDEMPOTENCY_KEY).build();
    }

    /** Proceeds as without the client half. Calls made on the way are outside of the caller's scope. */
    private static Response withoutId(Chain chain, Request request) throws IOException {
        return CallScope.<Response, IOException>outside(() -> chain.proceed(request));
    }

    private static Response run(OkHttpCall call, Retry retry) throws Throwable {
        return CallScope.<Response, Throwable>outside(() -> responseOf(CallLoop.run(call.logical(), retry, call)));
    }

    private static Response responseOf(@Nullable Object value) {
        if (value instanceof Response response) {
            return response;
        }
        throw new IllegalStateException("a call ended without a response");
    }

    /** Returns OkHttp's exception for a call that ended during a wait. */
    private static IOException gaveUp(OkHttpCall call, Throwable cause) {
        if (call.isCanceled() && !Thread.currentThread().isInterrupted()) {
            return new IOException("Canceled", cause);
        }
        boolean isInterrupted = Thread.currentThread().isInterrupted() || cause instanceof InterruptedException;
        InterruptedIOException ended = new InterruptedIOException(isInterrupted ? "interrupted" : "timeout");
        ended.initCause(cause);
        return ended;
    }
}
