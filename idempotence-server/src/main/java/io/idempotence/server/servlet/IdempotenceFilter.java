package io.idempotence.server.servlet;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.InvalidIdempotencyKeyException;
import io.idempotence.http.Refusal;
import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Decision;
import io.idempotence.server.Engine;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.IdempotentExecution;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Enumeration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The servlet filter that protects the handlers behind it: the first request with an {@code Idempotency-Key} runs, and every later one gets
 * the first one's response (promises P2 to P6).
 *
 * <p>Install it in one line, from a {@code ServletContainerInitializer} or {@code ServletContextListener}:
 *
 * <pre>{@code
 * IdempotenceFilter.install(servletContext, Idempotence.over(RedisIdempotenceStorage.connect("localhost:6379")), "/payments/*");
 * }</pre>
 *
 * <p>Put it behind the filters that authenticate, authorise and limit rates. What they refuse then leaves no record, and every replay
 * passes them again. Defaults, each changed in the {@link IdempotenceFilterBuilder}:
 *
 * <ul>
 *   <li>POST and PATCH must carry an ID. PUT, DELETE and other unsafe methods are protected if they carry one. GET, HEAD, OPTIONS and TRACE
 *       pass through untouched.
 *   <li>The policy is that of the {@link Idempotence}, unless {@link IdempotenceFilterBuilder#operation} sets another for some requests.
 *   <li>An ID belongs to the authenticated principal, if there is one.
 *   <li>A request body may have 10 MiB. A larger one gets 413 and does not run.
 *   <li>A response of up to 1 MiB is stored. A larger one is sent but not stored, and later attempts are refused as result-unavailable.
 *   <li>All requests together may hold a quarter of the heap. A request beyond that is refused as overloaded and does not run.
 *   <li>A duplicate of a running request waits for its response if it sends {@code Prefer: wait}, for at most 10 s. Otherwise, or after
 *       that time, it is refused as in-progress.
 *   <li>Stored and replayed headers: Content-Type, Content-Language, Content-Disposition, Content-Encoding, Content-Range, Location,
 *       Content-Location, ETag, Last-Modified, Link, Cache-Control.
 * </ul>
 *
 * <p>Synchronous and asynchronous handlers, {@code sendError} with the application's error pages, and redirects are recorded as the client
 * sees them. Other filters, in front and behind, see the same requests and responses as without this filter. There is one exception: a
 * filter in front no longer finds the parameters of a form after its {@code doFilter} has returned. Error pages still find them.
 *
 * <p>If the application maps the filter itself instead of calling {@code install}, the filter protects less, because it cannot find out
 * what it is mapped to. A response that an asynchronous handler dispatches leaves before it is recorded. A request that a filter in front
 * dispatches later is not protected.
 *
 * <p>Request bodies and responses are held in memory, up to their caps, and together up to {@link IdempotenceFilterBuilder#maxMemory}.
 * Thread-safe.
 */
public final class IdempotenceFilter implements Filter {
    private static final Pattern ATTEMPT_NUMBER = Pattern.compile("[1-9][0-9]{0,8}");
    /** The request attribute with the filter that let the request through, so that no other protects it. */
    private static final String LET_THROUGH_BY = IdempotenceFilter.class.getName();

    private final Engine engine;
    private final FilterConfiguration config;
    private final OwnResponseWriter own;
    private final DuplicateWait waiting = new DuplicateWait();
    private final MemoryBudget memory;
    /** The memory for results while they are loaded. */
    private final MemoryBudget loading;
    /** The size of a recently loaded result, in bytes: at least that of the last one. It decays with each claim. */
    private final AtomicInteger lastLoaded = new AtomicInteger();

    private final FilterMapping mapping = new FilterMapping();
    private final FilterParts parts;

    IdempotenceFilter(Engine engine, FilterConfiguration config) {
        this.engine = engine;
        this.config = config;
        ProblemWriter problems = new ProblemWriter(config.problemBase());
        this.memory = new MemoryBudget(config.maxMemory());
        this.own = new OwnResponseWriter(engine, config, problems, memory);
        this.loading = new MemoryBudget(config.maxMemory() / 2);
        this.parts = new FilterParts(config, problems, mapping::isInstalled, mapping::seesRequestEnds);
    }

    /**
     * Installs a filter with every default.
     *
     * @param context the application's, while it starts
     * @param idempotence decides about each request; not closed by the filter
     * @param urlPatterns what to protect, for example {@code /payments/*}; none protects everything
     * @return the filter's registration
     * @throws IllegalArgumentException if a pattern is not a URL pattern
     * @throws IllegalStateException if the application has started already
     */
    public static FilterRegistration.Dynamic install(
            ServletContext context, Idempotence idempotence, String... urlPatterns) {
        return builder(idempotence).build().install(context, urlPatterns);
    }

    /**
     * Returns a builder with every default.
     *
     * @param idempotence decides about each request; not closed by the filter
     */
    public static IdempotenceFilterBuilder builder(Idempotence idempotence) {
        return new IdempotenceFilterBuilder(idempotence);
    }

    /**
     * Installs this filter under the name {@code idempotence}, or {@code idempotence-2} and so on if there are others. It is mapped to
     * REQUEST dispatches of the patterns, and to all ASYNC and ERROR dispatches, in which handlers and error pages complete responses. A
     * pattern without a {@code *} applies to its path with and without a last slash.
     *
     * <p>A request that a filter in front dispatches later is protected then. A request that is forwarded or dispatched into a pattern from
     * outside is not protected: protect the path that callers use. If the patterns of several filters cover a request, the filter that was
     * installed first decides, whether it protects the request or lets it through.
     *
     * @param context the application's, while it starts
     * @param urlPatterns what to protect, for example {@code /payments/*}; none protects everything
     * @return the filter's registration
     * @throws IllegalArgumentException if a pattern is not a URL pattern
     * @throws IllegalStateException if the application has started already, or if this filter was installed before
     */
    public FilterRegistration.Dynamic install(ServletContext context, String... urlPatterns) {
        return install(context, true, urlPatterns);
    }

    /**
     * Installs this filter like {@link #install(ServletContext, String...)}, for frameworks that order filters by themselves.
     *
     * @param context the application's, while it starts
     * @param isMatchAfter whether the filter is behind those that the application declares, as in {@link
     *     FilterRegistration#addMappingForUrlPatterns}
     * @param urlPatterns what to protect, for example {@code /payments/*}; none protects everything
     * @return the filter's registration
     * @throws IllegalArgumentException if a pattern is not a URL pattern
     * @throws IllegalStateException if the application has started already, or if this filter was installed before
     */
    public FilterRegistration.Dynamic install(ServletContext context, boolean isMatchAfter, String... urlPatterns) {
        return mapping.install(this, context, isMatchAfter, urlPatterns);
    }

    /**
     * Returns the execution that a request is part of. A handler uses it to read its fence, or to decide about the ID itself.
     *
     * @param request the request as the handler gets it
     * @return the execution, or empty if the request is not protected
     */
    public static Optional<IdempotentExecution> execution(ServletRequest request) {
        return Optional.ofNullable(ProtectedRequest.of(request)).map(ProtectedRequest::execution);
    }

    /**
     * The settings of the protected requests of a method and path, before {@link RequestSettings#choose} applies, for integrations that
     * check them at start.
     *
     * @param method an HTTP method, for example {@code POST}
     * @param path relative to the context; a segment in braces is one with any value
     * @return the settings
     */
    public RequestSettings settingsOf(String method, String path) {
        return config.settingsOf(method, path);
    }

    /**
     * Prepares the filter. A filter that the application mapped itself is also mapped to ERROR dispatches, so that error pages are recorded
     * as callers see them.
     *
     * @throws ServletException if the container does not allow that mapping
     */
    @Override
    public void init(FilterConfig filter) throws ServletException {
        if (!mapping.isInstalled()) {
            mapping.completeByHand(filter);
        }
    }

    /**
     * Runs the handler, or gives the caller a replay or a refusal.
     *
     * @throws IllegalStateException if the body cannot be compared, because a filter in front has read it, or because the container has
     *     parsed a form that is not valid in its encoding. Nothing ran then
     */
    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (request instanceof HttpServletRequest http && response instanceof HttpServletResponse target) {
            doFilter(http, target, chain);
        } else {
            chain.doFilter(request, response);
        }
    }

    private void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        ProtectedRequest running = ProtectedRequest.of(request);
        if (running != null && !running.isRepeatedBy(request)) {
            if (running.isOf(config)) {
                running.laterDispatch(chain, request, response);
            } else {
                chain.doFilter(request, response);
            }
            return;
        }
        DuplicateWait.Decided decided = waiting.takeDecided(request);
        if (decided != null) {
            own.give(decided.id(), decided.decision(), request, response);
        } else if (!isFirstSight(request)) {
            chain.doFilter(request, response);
        } else {
            RequestSettings settings = config.settingsOf(request);
            if (settings == null) {
                letThrough(request, response, chain);
            } else {
                protect(settings, request, response, chain);
            }
        }
    }

    /**
     * Whether no idempotence filter has covered the request so far. Such a request may arrive in an ASYNC dispatch, if a filter in front
     * started asynchronous processing earlier.
     */
    private boolean isFirstSight(HttpServletRequest request) {
        Object letThroughBy = request.getAttribute(LET_THROUGH_BY);
        return switch (request.getDispatcherType()) {
            case REQUEST -> letThroughBy == null || letThroughBy == this;
            // A filter that let the request through has already run the handler.
            case ASYNC -> letThroughBy == null && mapping.covers(OriginalPath.inContext(request));
            default -> false;
        };
    }

    /** Lets a request through. If it passes this filter again, the filter decides again, and the same way. */
    private void letThrough(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        request.setAttribute(LET_THROUGH_BY, this);
        chain.doFilter(request, response);
    }

    /**
     * Protects a request: reads its ID and its content, which the fingerprint covers, and claims the ID. Then the handler runs, or the caller
     * gets a replay or a refusal, perhaps after a wait for another attempt. A request without an ID that needs none is let through. A
     * request that is too large, for which no memory is left, or whose scope is not clear, does not run.
     *
     * <p>The handler runs outside every {@code try}: what it throws is its own, even if it looks like a refusal of this filter.
     */
    private void protect(
            RequestSettings settings, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        Optional<IdempotenceId> sent;
        try {
            sent = config.header().parse(FilterConfiguration.keyLines(request));
        } catch (InvalidIdempotencyKeyException e) {
            own.refuseInvalidKey(e, request, response);
            return;
        }
        if (sent.isEmpty()) {
            if (settings.requiresId()) {
                own.refuseMissingKey(request, response);
            } else {
                letThrough(request, response, chain);
            }
            return;
        }
        RequestContent content;
        IdempotentCall call;
        Decision decision;
        try {
            content = RequestContent.of(request, config, memory);
            try {
                String scope = config.scope().apply(request);
                call = new IdempotentCall(sent.get(), "", scope, content.fingerprint(), attemptNumber(request));
                decision = claimWithinMemory(call, settings.policy());
            } catch (Throwable e) {
                content.close();
                throw e;
            }
        } catch (RequestNotTakenException e) {
            own.refuseNotTaken(e, request, response);
            return;
        } catch (AmbiguousScopeException e) {
            own.refuseAmbiguousScope(e, request, response);
            return;
        }
        if (decision instanceof ClaimedExecution execution) {
            run(execution, request, content, response, chain);
        } else {
            // Thousands may wait, and each needs only its fingerprint.
            content.discard();
            Decision.Substitute substitute = (Decision.Substitute) decision;
            Decision.Substitute afterwards = waitIfInProgress(substitute, call, settings, request, response);
            if (afterwards != null) {
                own.respond(call.id(), afterwards, request, response);
            }
        }
    }

    /**
     * Waits while another attempt runs, if the caller prefers that. Returns the decision after the wait, or null if it comes in an ASYNC
     * dispatch.
     */
    private Decision.@Nullable Substitute waitIfInProgress(
            Decision.Substitute decision,
            IdempotentCall call,
            RequestSettings settings,
            HttpServletRequest request,
            HttpServletResponse response) {
        if (!(decision instanceof Decision.Refuse refuse) || refuse.refusal() != Refusal.IN_PROGRESS) {
            return decision;
        }
        try (DuplicateWait.Turn turn = waiting.turn(request, response, settings.maxWait(), mapping.isInstalled())) {
            return turn.await(call.id(), engine.await(decision, call, settings.policy(), turn.patience()));
        }
    }

    /** The attempt number that a caller sends. It is a hint: a value that is not a number counts as 1 and is never refused. */
    private static int attemptNumber(HttpServletRequest request) {
        Enumeration<String> lines = request.getHeaders(IdempotenceHeaders.IDEMPOTENCY_ATTEMPT);
        if (!lines.hasMoreElements()) {
            return 1;
        }
        String number = lines.nextElement();
        return !lines.hasMoreElements() && ATTEMPT_NUMBER.matcher(number).matches() ? Integer.parseInt(number) : 1;
    }

    /**
     * Claims the ID. The size of a stored result is unknown until it is loaded, and is assumed to be that of the last ones. If so many are
     * being loaded that they may take more than half of the memory, a duplicate of a completed request is refused before its result is
     * loaded. A first attempt is never refused here.
     */
    private Decision claimWithinMemory(IdempotentCall call, IdempotencePolicy policy) throws RequestNotTakenException {
        try (MemoryBudget.Share share = loading.share()) {
            boolean hasRoom = share.reserve(Math.min(lastLoaded.get(), loading.limit()));
            if (!hasRoom && engine.isCompleted(call)) {
                throw RequestNotTakenException.noMemory();
            }
            Decision decision = engine.claim(call, policy);
            int size = decision instanceof Decision.Replay replay ? replay.result().length : 0;
            lastLoaded.updateAndGet(before -> Math.max(size, before - before / 16));
            return decision;
        }
    }

    private void run(
            ClaimedExecution execution,
            HttpServletRequest request,
            RequestContent content,
            HttpServletResponse response,
            FilterChain chain)
            throws IOException, ServletException {
        ProtectedRequest running;
        try {
            running = ProtectedRequest.begin(execution, parts, request, content, response);
        } catch (Throwable e) {
            // Perhaps a listener of the application threw. Nothing ran, and nothing else would end the execution.
            execution.finishWithoutResult(Verdict.RELEASE);
            content.close();
            throw e;
        }
        running.firstDispatch(chain);
    }
}
