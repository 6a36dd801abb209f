package io.idempotence.client.feign;

import feign.Request;
import feign.RequestTemplate;
import io.idempotence.client.internal.scope.ThreadBound;
import io.idempotence.client.internal.scope.ThreadBound.Task;
import io.idempotence.client.internal.scope.WeakIdentityMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/** Which call a method handler runs, and which attempt of it a request is. */
final class CallLookup {
    /**
     * The handlers between the proxy and the retry loop may hop threads, and all of them pass the very array on. A thread-local
     * would be lost there; an inheritable one would hand an old ID to a pooled thread.
     */
    private final WeakIdentityMap<Object[], FeignCall> byArguments = new WeakIdentityMap<>();

    /** For handlers that copy the arguments. Holds only while the proxy's call is on the stack. */
    private final ThreadBound<OpenCall> open = new ThreadBound<>();

    private final ThreadBound<FeignAttempt> current = new ThreadBound<>();

    /** For clients that talk on another thread; holds while an attempt runs. */
    private final ConcurrentMap<TemplateKey, FeignAttempt> byTemplate = new ConcurrentHashMap<>();

    private record OpenCall(FeignCall call, ClientMethod method, Object[] args) {
        /** The very same arguments: a handler may also split one call into several, which must not share an ID. */
        boolean isFor(ClientMethod other, Object @Nullable [] otherArgs) {
            int length = otherArgs == null ? 0 : otherArgs.length;
            if (method != other || args.length != length) {
                return false;
            }
            for (int i = 0; i < length; i++) {
                if (otherArgs == null || args[i] != otherArgs[i]) {
                    return false;
                }
            }
            return true;
        }
    }

    private record TemplateKey(RequestTemplate template) {
        @Override
        public int hashCode() {
            return System.identityHashCode(template);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof TemplateKey that && template == that.template;
        }
    }

    /** Runs {@code work}, below which {@link #callOf} finds {@code call}. Calls nest. */
    @Nullable
    Object whileOpen(FeignCall call, ClientMethod method, Object[] args, Task<@Nullable Object, Throwable> work)
            throws Throwable {
        byArguments.put(args, call);
        return open.during(new OpenCall(call, method, args), work);
    }

    /** No handler will ask for the call with these arguments any more. */
    void forget(Object[] args) {
        byArguments.remove(args);
    }

    /** The call that a handler passed on; null if it passed on a copy of the arguments, on another thread. */
    @Nullable
    FeignCall callOf(ClientMethod method, Object @Nullable [] args) {
        FeignCall call = args == null ? null : byArguments.get(args);
        OpenCall opened = call == null ? open.get() : null;
        return opened != null && opened.isFor(method, args) ? opened.call : call;
    }

    /** Runs {@code work} with {@code attempt} as the current one of this thread; calls nest. */
    @Nullable
    Object attempting(FeignAttempt attempt, Task<@Nullable Object, Throwable> work) throws Throwable {
        return current.during(attempt, work);
    }

    @Nullable
    FeignAttempt attemptOf(@Nullable Request request) {
        return attemptOf(request == null ? null : request.requestTemplate());
    }

    /** Feign's own Retryer may ask on a thread of the HTTP client, where only the template leads back to the attempt. */
    @Nullable
    FeignAttempt attemptOf(@Nullable RequestTemplate template) {
        FeignAttempt attempt = current.get();
        return attempt != null || template == null ? attempt : byTemplate.get(new TemplateKey(template));
    }

    void remember(RequestTemplate template, FeignAttempt attempt) {
        byTemplate.put(new TemplateKey(template), attempt);
    }

    /** No client will ask for this attempt any more. */
    void forget(FeignAttempt attempt) {
        RequestTemplate template = attempt.prepared();
        if (template != null) {
            byTemplate.remove(new TemplateKey(template));
        }
    }

    /** Calls and attempts not yet forgotten. */
    int size() {
        return byArguments.size() + byTemplate.size();
    }
}
