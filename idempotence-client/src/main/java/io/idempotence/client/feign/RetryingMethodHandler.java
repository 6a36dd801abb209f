package io.idempotence.client.feign;

import feign.FeignException;
import feign.InvocationHandlerFactory.MethodHandler;
import feign.Request;
import feign.Response;
import feign.RetryableException;
import io.github.resilience4j.retry.Retry;
import io.idempotence.client.internal.call.CallLoop;
import io.idempotence.client.internal.call.ClientAdapter;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** The handler that runs the attempts of a logical call over Feign's own handler. */
final class RetryingMethodHandler implements MethodHandler {
    private final MethodHandler delegate;
    private final ClientMethod method;
    private final Installation installation;

    RetryingMethodHandler(MethodHandler delegate, ClientMethod method, Installation installation) {
        this.delegate = delegate;
        this.method = method;
        this.installation = installation;
    }

    @Override
    public @Nullable Object invoke(Object[] args) throws Throwable {
        FeignCall call = installation.calls().callOf(method, args);
        if (call == null) {
            installation.warnings().argumentsAreCopied();
            call = new FeignCall(method);
        }
        Retry retry = method.operation().retry();
        call.runs();
        ClientAdapter adapter = new FeignAdapter(call, args);
        return method.returnsFuture()
                ? call.runsUntil(CallLoop.runAsync(
                        call.logical(),
                        retry,
                        adapter,
                        method.operation().config().executor(),
                        installation.threads()))
                : CallLoop.run(call.logical(), retry, adapter);
    }

    private final class FeignAdapter implements ClientAdapter {
        private final FeignCall call;
        private final Object[] args;

        FeignAdapter(FeignCall call, Object[] args) {
            this.call = call;
            this.args = args;
        }

        @Override
        public @Nullable Object send(int attempt, Observation seen) throws Throwable {
            FeignAttempt current = new FeignAttempt(call, attempt, seen, installation.watchdog());
            Object value = null;
            try {
                value = installation.calls().attempting(current, () -> delegate.invoke(args));
                if (value instanceof CompletableFuture<?> future && future.isCompletedExceptionally()) {
                    call.notMade();
                }
            } catch (Throwable t) {
                call.notMade();
                throw t;
            } finally {
                if (!(value instanceof CompletableFuture)) {
                    end(current);
                }
            }
            if (value instanceof CompletableFuture<?> future) {
                call.outlivesItsProxy();
                future.whenComplete((decoded, thrown) -> {
                    end(current);
                    if (future.isCancelled()) {
                        // Feign does not pass a cancellation on to the HTTP client.
                        current.abort();
                    }
                });
            }
            return value;
        }

        private void end(FeignAttempt attempt) {
            attempt.ended();
            installation.calls().forget(attempt);
        }

        /** Closes a response. Any other value belongs to the decoder, which may return the same one to other callers. */
        @Override
        public void discard(@Nullable Object value) {
            if (value instanceof Response response) {
                response.close();
            }
        }

        /** {@link feign.ExceptionPropagationPolicy#UNWRAP} throws the cause. */
        @Override
        public boolean meansNotSent(Throwable thrown) {
            return thrown instanceof RetryableException || thrown instanceof IOException;
        }

        @Override
        public Throwable failureOf(Observation seen, @Nullable Object value) {
            if (value instanceof Response response) {
                Response bodiless = response.toBuilder().body(new byte[0]).build();
                return FeignException.errorStatus(method.configKey(), bodiless);
            }
            return new IllegalStateException("an error status was decoded to a value");
        }

        @Override
        public Throwable timedOut(SocketTimeoutException cause) {
            Request request = call.lastRequest();
            return request == null
                    ? cause
                    : new RetryableException(-1, cause.getMessage(), request.httpMethod(), cause, (Long) null, request);
        }

        @Override
        public Throwable refused(Refusal refusal, Observation seen, Throwable cause) {
            byte[] body = cause instanceof FeignException e
                    ? e.responseBody().map(RetryingMethodHandler::bytes).orElse(null)
                    : null;
            return new FeignRequestRefusedException(
                    refusal, seen.status(), call.logical().id(), lastRequest(), cause, body, seen.headers());
        }

        @Override
        public Throwable unknown(Observation seen, Throwable cause) {
            return call.unknown(seen, cause);
        }

        private Request lastRequest() {
            Request request = call.lastRequest();
            if (request == null) {
                throw new IllegalStateException(
                        "there was a response without a request; expected the request to be recorded before its response");
            }
            return request;
        }
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
