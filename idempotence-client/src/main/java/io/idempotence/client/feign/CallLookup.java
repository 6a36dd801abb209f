package io.idempotence.client.feign;

import feign.Request;
import feign.RequestTemplate;
import io.idempotence.client.internal.scope.WeakIdentityMap;
import io.idempotence.internal.ThreadBound;
import io.idempotence.internal.ThreadBound.Task;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/** The registry of running calls. It finds the call that a method handler runs, and the attempt that a request belongs to. */
final class CallLookup {
    /**
     * The calls by their arguments. Handlers between the proxy and the retry loop may change threads, and all of them pass on the same
     * array. A thread-local would be lost there; an inheritable one would bring an old ID to a pooled thread.
     */
    private final WeakIdentityMap<Object[], FeignCall> byArguments = new WeakIdentityMap<>();

    /** The call of a handler that copies the arguments. Set only while the proxy's call is on the stack. */
    private final ThreadBound<OpenCall> open = new ThreadBound<>();

    private final ThreadBound<FeignAttempt> current = new ThreadBound<>();

    /** The attempts by request template, for clients that send on another thread. Set only while an attempt runs. */
    private final ConcurrentMap<TemplateKey, FeignAttempt> byTemplate = new ConcurrentHashMap<>();

    private record OpenCall(FeignCall call, ClientMethod method, Object[] args) {
        /** Whether the arguments are identical. A handler may also split one call into several, which must not share an ID. */
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

    /** Runs {@code work}. Within it, {@link #callOf} finds {@code call}. Calls nest. */
    @Nullable
    Object whileOpen(FeignCall call, ClientMethod method, Object[] args, Task<@Nullable Object, Throwable> work)
            throws Throwable {
        byArguments.put(args, call);
        return open.during(new OpenCall(call, method, args), work);
    }

    /** Removes a call when no handler needs it any more. */
    void forget(Object[] args) {
        byArguments.remove(args);
    }

    /**
     * Returns the call that a handler passed on; null if it passed on a copy of the arguments, on another thread, or passed them to a
     * method of another client.
     */
    @Nullable
    FeignCall callOf(ClientMethod method, Object @Nullable [] args) {
        FeignCall call = args == null ? null : byArguments.get(args);
        if (call != null && !call.method().isOfSameClient(method)) {
            return null;
        }
        OpenCall opened = call == null ? open.get() : null;
        return opened != null && opened.isFor(method, args) ? opened.call : call;
    }

    /** Runs {@code work} with {@code attempt} as the current one of this thread. Calls nest. */
    @Nullable
    Object attempting(FeignAttempt attempt, Task<@Nullable Object, Throwable> work) throws Throwable {
        return current.during(attempt, work);
    }

    @Nullable
    FeignAttempt attemptOf(@Nullable Request request) {
        return attemptOf(request == null ? null : request.requestTemplate());
    }

    /**
     * Returns the attempt that a request template belongs to. Feign's own Retryer may call this on a thread of the HTTP client, where only
     * the template leads to the attempt.
     */
    @Nullable
    FeignAttempt attemptOf(@Nullable RequestTemplate template) {
        FeignAttempt attempt = current.get();
        return attempt != null || template == null ? attempt : byTemplate.get(new TemplateKey(template));
    }

    void remember(RequestTemplate template, FeignAttempt attempt) {
        byTemplate.put(new TemplateKey(template), attempt);
    }

    /** Removes an attempt when no client needs it any more. */
    void forget(FeignAttempt attempt) {
        RequestTemplate template = attempt.prepared();
        if (template != null) {
            byTemplate.remove(new TemplateKey(template));
        }
    }

    /** The number of calls and attempts in this registry. */
    int size() {
        return byArguments.size() + byTemplate.size();
    }
}
