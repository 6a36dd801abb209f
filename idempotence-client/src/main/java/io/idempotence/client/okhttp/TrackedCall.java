package io.idempotence.client.okhttp;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import okhttp3.Request;

/**
 * An {@link okhttp3.Call} with the context in which it was made and the state of its requests.
 *
 * <p>An interceptor in front may proceed more than once. With the same method and path that is the same logical call, sent again, whatever
 * the host and the query. Any other request, for example for a token, is a call of its own.
 */
final class TrackedCall {
    private final CallContext context;
    private final ConcurrentMap<String, CallMemory> memories = new ConcurrentHashMap<>();

    TrackedCall(CallContext context) {
        this.context = context;
    }

    CallContext context() {
        return context;
    }

    /** @param key the lines of the request's own ID; empty if it has none */
    CallMemory memory(Request request, List<String> key) {
        String name = request.method() + " " + request.url().encodedPath() + " " + String.join("\n", key);
        return memories.computeIfAbsent(name, absent -> new CallMemory());
    }
}
