package io.idempotence.spring.actuate;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.storage.StorageKey;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.util.UrlPathHelper;

/**
 * The latest calls of this process whose outcome is unknown. A record has only the hash of its ID; the retry that is refused, or the handler
 * that could not tell, shows which ID and which request it is. Thread-safe.
 */
final class UncertainCalls implements IdempotenceListener {
    private static final int MOST = 1_000;

    private final Map<String, UncertainCall> calls = Collections.synchronizedMap(new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, UncertainCall> eldest) {
            return size() > MOST;
        }
    });

    /**
     * An uncertain call.
     *
     * @param request method and path in the application, or null if it was no request
     */
    record UncertainCall(IdempotenceId id, @Nullable String request) {}

    Optional<UncertainCall> of(StorageKey key) {
        return Optional.ofNullable(calls.get(key.value()));
    }

    @Override
    public void onEvent(IdempotenceEvent event, IdempotenceId id) {
        // Has no key.
    }

    @Override
    public AttemptListener onAttempt(IdempotenceId id, StorageKey key) {
        // The request may be gone when an asynchronous one ends.
        String request = request();
        return (end, detail) -> {
            if (detail.equals("unknown") || detail.equals("outcome-unknown")) {
                calls.put(key.value(), new UncertainCall(id, request));
            }
        };
    }

    private static @Nullable String request() {
        return RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes current
                ? current.getRequest().getMethod() + " "
                        + UrlPathHelper.defaultInstance.getPathWithinApplication(current.getRequest())
                : null;
    }
}
