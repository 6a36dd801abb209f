package io.idempotence.spring.method;

import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.RequestSettings;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;

/** A handler with {@code @Idempotent}, under one of its mappings. Thread-safe. */
final class HandlerOperation {
    private final RequestMappingInfo mapping;
    private final HandlerMethod handler;
    private final OperationSettings settings;
    private final IdempotencePolicy.@Nullable Recovery recovery;
    private final List<FilterCoverage.Configured> configured;
    /** The settings for those that the filter has, which are the same for nearly every request. */
    private volatile @Nullable Derived last;

    private record Derived(RequestSettings configured, RequestSettings settings) {
        boolean isFor(RequestSettings others) {
            return others.policy() == configured.policy() && others.maxWait().equals(configured.maxWait());
        }
    }

    /** @param configured what its filters have for its requests, as far as they are known at start */
    HandlerOperation(
            RequestMappingInfo mapping,
            HandlerMethod handler,
            OperationSettings settings,
            IdempotencePolicy.@Nullable Recovery recovery,
            List<FilterCoverage.Configured> configured) {
        this.mapping = mapping;
        this.handler = handler;
        this.settings = settings;
        this.recovery = recovery;
        this.configured = configured;
    }

    RequestMappingInfo mapping() {
        return mapping;
    }

    OperationSettings declared() {
        return settings;
    }

    /** What its filters have for its requests; empty if none is known. */
    List<FilterCoverage.Configured> configured() {
        return configured;
    }

    Set<RequestMethod> methods() {
        return mapping.getMethodsCondition().getMethods();
    }

    Set<String> paths() {
        return mapping.getPatternValues();
    }

    String name() {
        return name(handler);
    }

    static String name(HandlerMethod handler) {
        return handler.getBeanType().getSimpleName() + "." + handler.getMethod().getName();
    }

    /**
     * The settings of a request.
     *
     * @param configured those that the filter has for it
     * @throws IllegalArgumentException if they do not fit together
     */
    RequestSettings settings(RequestSettings configured) {
        Derived known = last;
        if (known == null || !known.isFor(configured)) {
            known = new Derived(configured, derive(configured));
            last = known;
        }
        return known.settings;
    }

    private RequestSettings derive(RequestSettings configured) {
        return new RequestSettings(
                settings.isIdempotent(),
                settings.required(),
                settings.policy(configured.policy(), recovery),
                settings.maxWait() == null ? configured.maxWait() : settings.maxWait());
    }
}
