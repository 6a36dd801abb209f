package io.idempotence.server.servlet;

import io.idempotence.internal.MaxWait;
import io.idempotence.server.IdempotencePolicy;
import jakarta.servlet.ServletContext;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * The settings of a filter for one request. Immutable.
 *
 * <p>They are those of the {@link IdempotenceFilterBuilder}, which {@link #choose} may change request by request.
 *
 * @param isProtected whether the request is protected if it carries an ID. If not, the request passes through untouched
 * @param requiresId whether a protected request must carry an ID
 * @param policy the policy of the request's operation
 * @param maxWait the longest time a duplicate may wait for a running request, even if its {@code Prefer: wait} asks for more: 0, which
 *     never waits, to 10 minutes
 */
public record RequestSettings(boolean isProtected, boolean requiresId, IdempotencePolicy policy, Duration maxWait) {
    /**
     * Checks the settings.
     *
     * @throws IllegalArgumentException if {@code maxWait} is out of range
     */
    public RequestSettings {
        Objects.requireNonNull(policy, "policy");
        MaxWait.checked(maxWait);
    }

    /** The attribute of the application with its {@link Choice}. */
    private static final String CHOICE = RequestSettings.class.getName();

    private record Choice(BiFunction<? super HttpServletRequest, ? super RequestSettings, RequestSettings> of) {}

    /**
     * Chooses the settings of each request behind all filters of an application, for integrations that know the request's handler, whoever
     * builds the filters. It replaces an earlier choice. It is called once for each request that a filter covers, before the ID is read,
     * unless the method is GET, HEAD, OPTIONS or TRACE. A request that it throws for fails, and does not run.
     *
     * @param context the application's
     * @param choice gets the request and the settings that the filter has for it, and returns the same settings or others. For a PUT or
     *     DELETE without an ID it gets unprotected ones
     */
    public static void choose(
            ServletContext context,
            BiFunction<? super HttpServletRequest, ? super RequestSettings, RequestSettings> choice) {
        context.setAttribute(CHOICE, new Choice(Objects.requireNonNull(choice, "choice")));
    }

    /** Returns what the application chooses for a request, or these settings. */
    RequestSettings chosen(HttpServletRequest request) {
        return request.getServletContext().getAttribute(CHOICE) instanceof Choice choice
                ? choice.of().apply(request, this)
                : this;
    }
}
