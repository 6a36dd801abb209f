package io.idempotence.server.servlet;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.http.InvalidIdempotencyKeyException;
import io.idempotence.http.Refusal;
import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Decision;
import io.idempotence.server.Engine;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets the first request with an {@code Idempotency-Key} reach its handler and answers every later one with the first one's
 * answer (promises P2 to P6).
 *
 * <p>Added to a servlet application in one line, from a {@code ServletContainerInitializer} or {@code ServletContextListener}:
 *
 * <pre>{@code
 * IdempotenceFilter.install(servletContext, Idempotence.over(RedisIdempotenceStorage.connect("localhost:6379")), "/payments/*");
 * }</pre>
 *
 * <p>Put it behind the filters that authenticate, authorise and limit rates: what they refuse leaves no record, and every
 * replay passes them again. Defaults, each changed in the {@link Builder}:
 *
 * <ul>
 *   <li>POST and PATCH must carry an ID; PUT, DELETE and other unsafe methods are protected when they carry one; GET, HEAD,
 *       OPTIONS and TRACE pass through untouched
 *   <li>the policy of the {@link Idempotence}, unless {@link Builder#operation} names another for some requests
 *   <li>an ID belongs to the authenticated principal, if there is one
 *   <li>a request body may have 10 MiB; a larger one is answered 413 and not run
 *   <li>an answer of up to 1 MiB is kept; a larger one goes out, and later attempts are refused as result-unavailable
 *   <li>all requests together may hold a quarter of the heap; a request beyond that is refused as overloaded and not run
 *   <li>a duplicate of a running request waits for its answer if it says {@code Prefer: wait}, for at most 10 s; otherwise, or
 *       after that, it is refused as in-progress
 *   <li>kept and replayed headers: Content-Type, Content-Language, Content-Disposition, Content-Encoding, Location,
 *       Content-Location, ETag, Last-Modified, Link, Cache-Control
 * </ul>
 *
 * <p>Synchronous and asynchronous handlers, {@code sendError} with the application's error pages, and redirects are all
 * recorded as the client sees them. Filters of others, in front and behind, see the requests and responses that they see without this
 * filter, except that a filter in front no longer finds the parameters of a form after its {@code doFilter} has returned. Mapped by the application itself instead of by {@code install}, it lets a response that an asynchronous handler dispatches
 * leave before it is recorded, and does not see requests that a filter in front dispatches later: it cannot know what it is mapped to.
 *
 * <p>Request bodies and responses are held in memory, up to their caps, and together up to {@link Builder#maxMemory}. Thread-safe.
 */
public final class IdempotenceFilter implements Filter {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);
    private static final Duration OVERLOAD_RETRY = Duration.ofSeconds(1);
    private static final String EXCHANGE = ProtectedRequest.class.getName();
    /** Names the filter that let the request through, so that no other one protects it. */
    private static final String LET_THROUGH_BY = IdempotenceFilter.class.getName();

    private final Engine engine;
    private final FilterConfiguration config;
    private final ProblemWriter problems;
    private final DuplicateWait waiting;
    private final MemoryBudget memory;
    /** Null if the application has mapped the filter itself: it cannot be told to what. */
    private volatile @Nullable List<UrlPattern> covered;

    private volatile boolean seesRequestEnds;

    private IdempotenceFilter(Builder builder) {
        this.engine = builder.idempotence.engine();
        this.config = builder.configuration();
        this.problems = new ProblemWriter(config.problemBase());
        this.waiting = new DuplicateWait(config.maxWait());
        this.memory = new MemoryBudget(config.maxMemory());
    }

    /**
     * Installs a filter that has every default.
     *
     * @param context of the application, while it starts
     * @param idempotence decides; not closed by the filter
     * @param urlPatterns what to protect, for example {@code /payments/*}; none protects everything
     * @return the filter's registration
     * @throws IllegalArgumentException if a pattern is none
     * @throws IllegalStateException if the application has started already
     */
    public static FilterRegistration.Dynamic install(
            ServletContext context, Idempotence idempotence, String... urlPatterns) {
        return builder(idempotence).build().install(context, urlPatterns);
    }

    /**
     * A builder that has every default.
     *
     * @param idempotence decides; not closed by the filter
     * @return a new builder
     */
    public static Builder builder(Idempotence idempotence) {
        return new Builder(idempotence);
    }

    /**
     * Installs this filter under the name {@code idempotence}, or {@code idempotence-2} and so on if there are others, for
     * REQUEST dispatches of the patterns, and for all ASYNC and ERROR dispatches, in which handlers and error pages finish
     * answers. A pattern without a {@code *} holds for its path with and without a last slash.
     *
     * <p>A request that a filter in front holds back and dispatches again later is protected then. One that is forwarded or
     * dispatched into a pattern from outside of it is not: protect the path that callers use. Where the patterns of several
     * filters cover a request, the one that was installed first decides about it, whether it protects it or lets it through.
     *
     * @param context of the application, while it starts
     * @param urlPatterns what to protect, for example {@code /payments/*}; none protects everything
     * @return the filter's registration
     * @throws IllegalArgumentException if a pattern is none
     * @throws IllegalStateException if the application has started already, or has this filter
     */
    public FilterRegistration.Dynamic install(ServletContext context, String... urlPatterns) {
        String[] patterns = urlPatterns.length == 0 ? new String[] {"/*"} : urlPatterns;
        List<UrlPattern> covering =
                Stream.of(patterns).map(UrlPattern::ofMapping).toList();
        if (covered != null) {
            throw new IllegalStateException(
                    "this filter is installed already: build one more for other settings, or name all patterns at once");
        }
        String name = "idempotence";
        for (int others = 1; context.getFilterRegistration(name) != null; others++) {
            name = "idempotence-" + (others + 1);
        }
        FilterRegistration.Dynamic registration = context.addFilter(name, this);
        if (registration == null) {
            throw new IllegalStateException(
                    "the container has this filter already: build one more for other settings, or name all patterns at once");
        }
        covered = covering;
        registration.setAsyncSupported(true);
        String[] mapped =
                Stream.of(patterns).flatMap(UrlPattern::mappings).distinct().toArray(String[]::new);
        registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, mapped);
        registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.ASYNC, DispatcherType.ERROR), true, "/*");
        addListener(context);
        return registration;
    }

    /**
     * The execution a request is part of, for a handler that wants its fence or decides itself what becomes of the ID.
     *
     * @param request as the handler sees it
     * @return the execution, or empty if the request is not protected
     */
    public static Optional<IdempotentExecution> execution(ServletRequest request) {
        return Optional.ofNullable((ProtectedRequest) request.getAttribute(EXCHANGE))
                .map(ProtectedRequest::execution);
    }

    /**
     * Prepares the filter. One that the application has mapped itself is mapped to ERROR dispatches as well, so that error pages are
     * recorded as callers see them.
     *
     * @throws ServletException if the container does not allow that
     */
    @Override
    public void init(FilterConfig filter) throws ServletException {
        if (covered != null) {
            return;
        }
        LOG.warn(
                "The idempotence filter '{}' is mapped by the application: what an asynchronous handler dispatches leaves before it is"
                        + " recorded, and what a filter in front dispatches later is not protected; use IdempotenceFilter.install",
                filter.getFilterName());
        try {
            FilterRegistration registration = filter.getServletContext().getFilterRegistration(filter.getFilterName());
            registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.ERROR), true, "/*");
            // Undertow does not start listeners that are added once filters are initialised, and every request would
            // fail.
            if (!filter.getServletContext().getClass().getName().startsWith("io.undertow.")) {
                addListener(filter.getServletContext());
            }
        } catch (RuntimeException e) {
            throw new ServletException(
                    "the container does not let the idempotence filter '" + filter.getFilterName()
                            + "' map itself to ERROR dispatches, without which error pages are not replayed as they were; register it"
                            + " with IdempotenceFilter.install(servletContext, idempotence, \"/payments/*\") before the application has"
                            + " started, in Spring Boot from a ServletContextInitializer bean instead of a FilterRegistrationBean",
                    e);
        }
    }

    private void addListener(ServletContext context) {
        context.addListener(new RequestEnds());
        seesRequestEnds = true;
    }

    /** Tells the exchange of a request when an error page can no longer come. */
    private static final class RequestEnds implements ServletRequestListener {
        private static Optional<ProtectedRequest> exchange(ServletRequestEvent event) {
            return Optional.ofNullable(
                    (ProtectedRequest) event.getServletRequest().getAttribute(EXCHANGE));
        }

        @Override
        public void requestInitialized(ServletRequestEvent event) {
            exchange(event).ifPresent(ProtectedRequest::dispatchBegins);
        }

        @Override
        public void requestDestroyed(ServletRequestEvent event) {
            exchange(event).ifPresent(ProtectedRequest::dispatchesEnded);
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (!(request instanceof HttpServletRequest http) || !(response instanceof HttpServletResponse answer)) {
            chain.doFilter(request, response);
            return;
        }
        ProtectedRequest exchange = (ProtectedRequest) request.getAttribute(EXCHANGE);
        if (exchange == null) {
            DuplicateWait.Decided decided = waiting.takeDecided(http);
            if (decided != null) {
                give(decided.id(), decided.decision(), answer);
            } else if (!isFirstSight(http)) {
                chain.doFilter(request, response);
            } else if (isProtected(http)) {
                boolean isAsyncInFront = http.isAsyncStarted();
                protect(http, answer, chain);
                if (isAsyncInFront
                        && http.getAttribute(EXCHANGE) == null
                        && http.getAttribute(LET_THROUGH_BY) == null) {
                    // The handler that would have completed it does not run: the caller need not wait for that.
                    answer.flushBuffer();
                }
            } else {
                letThrough(http, answer, chain);
            }
        } else if (!exchange.isOf(config)) {
            // Another idempotence filter protects it.
            chain.doFilter(request, response);
        } else if (request.getDispatcherType() == DispatcherType.ASYNC) {
            exchange.asyncDispatch(chain, http, answer);
        } else if (request.getDispatcherType() == DispatcherType.ERROR) {
            exchange.errorPage(chain, http, answer);
        } else {
            chain.doFilter(request, response);
        }
    }

    /**
     * To be called before a response that the handler does not give. Nobody may complete asynchronous processing that a filter in front
     * has started, and until its timeout the container takes no other request from this connection.
     */
    private static void endConnectionAfter(HttpServletRequest request, HttpServletResponse response) {
        if (request.isAsyncStarted() && request.getProtocol().startsWith("HTTP/1.")) {
            response.setHeader("Connection", "close");
        }
    }

    /**
     * Whether no filter of this kind has covered the request so far. A filter in front may have started asynchronous processing
     * before this one was asked, and dispatches the request now.
     */
    private boolean isFirstSight(HttpServletRequest request) {
        Object letThroughBy = request.getAttribute(LET_THROUGH_BY);
        if (letThroughBy != null && letThroughBy != this) {
            return false;
        }
        List<UrlPattern> patterns = covered;
        return switch (request.getDispatcherType()) {
            case REQUEST -> true;
            // Let through by this one: the handler has run.
            case ASYNC ->
                letThroughBy == null && patterns != null && isCovered(OriginalPath.inContext(request), patterns);
            default -> false;
        };
    }

    /** Where the caller sent a request counts: a handler may dispatch it to a path of ours after it ran. */
    private static boolean isCovered(String callersPath, List<UrlPattern> patterns) {
        return patterns.stream().anyMatch(pattern -> pattern.covers(callersPath));
    }

    /** A caller that sends an ID with a PUT or DELETE relies on it: letting it through would run it unprotected (promise P6). */
    private boolean isProtected(HttpServletRequest request) {
        String method = request.getMethod();
        return config.methods().contains(method)
                || (!Builder.NEVER.contains(method) && request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY) != null);
    }

    private void protect(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        Optional<IdempotenceId> id;
        try {
            id = config.header().parse(Collections.list(request.getHeaders(IdempotenceHeaders.IDEMPOTENCY_KEY)));
        } catch (InvalidIdempotencyKeyException e) {
            endConnectionAfter(request, response);
            problems.refuse(response, Refusal.KEY_INVALID, Duration.ZERO, "Fix the header: " + e.getMessage() + ".");
            return;
        }
        if (id.isPresent()) {
            protect(id.get(), request, response, chain);
        } else if (config.keyRequired() && config.methods().contains(request.getMethod())) {
            endConnectionAfter(request, response);
            problems.refuse(
                    response,
                    Refusal.KEY_MISSING,
                    Duration.ZERO,
                    "Send the header Idempotency-Key with a new UUID for each operation, and the same one for each retry.");
        } else {
            letThrough(request, response, chain);
        }
    }

    /** The filter itself looks at the request again, should it come by again: the same request gets the same verdict. */
    private void letThrough(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        request.setAttribute(LET_THROUGH_BY, this);
        chain.doFilter(request, response);
    }

    private void protect(IdempotenceId id, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        RequestContent content;
        try {
            content =
                    RequestContent.of(request, config.maxRequestBody(), config.bodyForm(), config.formLimits(), memory);
        } catch (RequestContent.NotTaken e) {
            endConnectionAfter(request, response);
            if (e.reason() == RequestContent.NotTaken.Reason.TOO_LARGE) {
                problems.requestTooLarge(response, config.maxRequestBody());
            } else {
                problems.refuse(response, Refusal.OVERLOADED, OVERLOAD_RETRY, null);
            }
            return;
        }
        ClaimedExecution execution = null;
        try {
            IdempotentCall call = new IdempotentCall(
                    id, "", config.scope().apply(request), content.fingerprint(), AttemptNumber.of(request));
            execution = claim(call, request, response, content);
        } finally {
            if (execution == null) {
                content.close();
            }
        }
        if (execution != null) {
            run(execution, request, content, response, chain);
        }
    }

    /** The right to run, or null if the caller gets its response without. */
    private @Nullable ClaimedExecution claim(
            IdempotentCall call, HttpServletRequest request, HttpServletResponse response, RequestContent content)
            throws IOException {
        try (DuplicateWait.Turn turn = waiting.turn(request, response, covered != null)) {
            IdempotencePolicy policy = config.policyFor(request);
            Decision decision = engine.claim(call, policy);
            if (decision instanceof Decision.Run run) {
                return run.execution();
            }
            // Thousands may wait, and each needs its fingerprint only.
            content.discard();
            Decision decided = turn.await(call.id(), engine.await(decision, call, policy, turn.patience()));
            if (decided != null) {
                endConnectionAfter(request, response);
                give(call.id(), decided, response);
            }
            return null;
        }
    }

    private void give(IdempotenceId id, Decision decision, HttpServletResponse response) throws IOException {
        if (decision instanceof Decision.Replay replay) {
            replay(id, replay.result(), response);
        } else if (decision instanceof Decision.Refuse refuse) {
            problems.refuse(response, refuse.refusal(), refuse.retryAfter(), null);
        }
    }

    private void run(
            ClaimedExecution execution,
            HttpServletRequest request,
            RequestContent content,
            HttpServletResponse response,
            FilterChain chain)
            throws IOException, ServletException {
        ProtectedRequest exchange;
        try {
            exchange = new ProtectedRequest(
                    execution, config, problems, covered != null, seesRequestEnds, request, content, response);
            request.setAttribute(EXCHANGE, exchange);
        } catch (Throwable e) {
            // A listener of the application, say. Nothing ran, and nobody else would end the execution.
            execution.finish(Verdict.RELEASE, StoredResponse.unavailable());
            content.close();
            throw e;
        }
        exchange.firstDispatch(chain);
    }

    private void replay(IdempotenceId id, byte[] result, HttpServletResponse response) throws IOException {
        try (MemoryBudget.Share held = memory.share()) {
            if (held.reserve(2L * result.length)) {
                ReplayWriter.give(result, response);
            } else {
                problems.refuse(response, Refusal.OVERLOADED, OVERLOAD_RETRY, null);
            }
        } catch (CorruptRecordException e) {
            Decision.Refuse refuse = engine.unreadable(id, e);
            problems.refuse(response, refuse.refusal(), refuse.retryAfter(), null);
        }
    }

    /** Builds an {@link IdempotenceFilter}. Not thread-safe. */
    public static final class Builder {
        private static final Set<String> NEVER = Set.of("GET", "HEAD", "OPTIONS", "TRACE");

        private final Idempotence idempotence;
        private IdempotencePolicy policy;
        private final List<OperationPolicy> operations = new ArrayList<>();
        private Set<String> methods = Set.of("POST", "PATCH");
        private boolean keyRequired = true;
        private IdempotencyKeyHeader header = IdempotencyKeyHeader.standard();
        private RequestScope scope = RequestScope.principal();
        private BodyForm bodyForm = BodyForm.bytes();
        private int maxRequestBody = 10 << 20;
        private int maxResponseBody = 1 << 20;
        private int maxFormParameters = -1;
        private int maxFormSize = -1;
        private long maxMemory = Runtime.getRuntime().maxMemory() / 4;
        private Duration maxWait = Duration.ofSeconds(10);
        private URI problemBase = URI.create("urn:idempotence:problem:");
        private final List<String> keptHeaders = new ArrayList<>(List.of(
                "Content-Language",
                "Content-Disposition",
                "Content-Encoding",
                "Location",
                "Content-Location",
                "ETag",
                "Last-Modified",
                "Link",
                "Cache-Control"));

        private Builder(Idempotence idempotence) {
            this.idempotence = idempotence;
            this.policy = idempotence.policy();
        }

        /**
         * Sets the policy of all operations behind this filter that have none of their own.
         *
         * @param policy default: that of the {@link Idempotence}
         * @return this
         */
        public Builder policy(IdempotencePolicy policy) {
            this.policy = Objects.requireNonNull(policy, "policy");
            return this;
        }

        /**
         * Sets the policy of one operation. Of several that cover a request the first counts. What else differs by operation,
         * such as {@link #methods} or {@link #maxRequestBody}, takes a filter of its own, on paths of its own: the first filter that
         * covers a request decides about it.
         *
         * @param requests a URL pattern relative to the context, or a method, a space and a URL pattern: {@code /points/*},
         *     {@code POST /accounts/{id}/charges}, where a name in braces stands for one segment
         * @param policy of these requests
         * @return this
         * @throws IllegalArgumentException if {@code requests} is not of this form
         */
        public Builder operation(String requests, IdempotencePolicy policy) {
            Objects.requireNonNull(policy, "policy");
            int space = requests.indexOf(' ');
            String method = space < 0 ? "" : unsafe(requests.substring(0, space));
            operations.add(new OperationPolicy(method, UrlPattern.of(requests.substring(space + 1)), policy));
            return this;
        }

        /**
         * Sets the methods that must carry an ID. Another unsafe method, PUT for example, is protected when it does carry one.
         *
         * @param methods default: POST and PATCH
         * @return this
         * @throws IllegalArgumentException if there is none, or one of GET, HEAD, OPTIONS, TRACE, which must change nothing
         */
        public Builder methods(String... methods) {
            Set<String> set = new TreeSet<>();
            for (String method : methods) {
                set.add(unsafe(method));
            }
            if (set.isEmpty()) {
                throw new IllegalArgumentException("methods must name at least one method, for example POST");
            }
            this.methods = Set.copyOf(set);
            return this;
        }

        private static String unsafe(String method) {
            String upper = method.toUpperCase(Locale.ROOT);
            if (upper.isBlank() || NEVER.contains(upper)) {
                throw new IllegalArgumentException(
                        "methods may be POST, PATCH, PUT, DELETE or one of your own, not GET, HEAD, OPTIONS or TRACE");
            }
            return upper;
        }

        /**
         * Lets requests without an ID through, unprotected. Without this they are refused as key-missing.
         *
         * @return this
         */
        public Builder keyOptional() {
            this.keyRequired = false;
            return this;
        }

        /**
         * Sets the grammar of the ID.
         *
         * @param header default: {@link IdempotencyKeyHeader#standard()}
         * @return this
         */
        public Builder header(IdempotencyKeyHeader header) {
            this.header = Objects.requireNonNull(header, "header");
            return this;
        }

        /**
         * Sets whose ID it is. IDs of different scopes never meet.
         *
         * @param scope default: {@link RequestScope#principal()}; with tenants
         *     {@code RequestScope.header("X-Tenant").and(RequestScope.principal())}
         * @return this
         */
        public Builder scope(RequestScope scope) {
            this.scope = Objects.requireNonNull(scope, "scope");
            return this;
        }

        /**
         * Sets what of a request body counts when two requests under one ID are compared.
         *
         * @param form default: {@link BodyForm#bytes()}. To change it makes retries of requests from before the change mismatch
         *     (422) once
         * @return this
         */
        public Builder bodyForm(BodyForm form) {
            this.bodyForm = Objects.requireNonNull(form, "form");
            return this;
        }

        /**
         * Sets the largest request body.
         *
         * @param bytes 0 to 1 GiB; default 10 MiB
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxRequestBody(int bytes) {
            this.maxRequestBody = size("maxRequestBody", bytes);
            return this;
        }

        /**
         * Sets the largest answer that is kept.
         *
         * @param bytes 0 to 1 GiB; default 1 MiB
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxResponseBody(int bytes) {
            this.maxResponseBody = size("maxResponseBody", bytes);
            return this;
        }

        /**
         * Sets how many parameters a request with a form may have. The container's own limit does not apply, because this filter reads
         * the form first: set both to the same. A handler that asks for a parameter of a larger form ends with a 400.
         *
         * @param parameters 1 to 1,000,000; default that of the container: 1000, in Tomcat 10.1 10,000. In Jetty, names are counted
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxFormParameters(int parameters) {
            if (parameters < 1 || parameters > 1_000_000) {
                throw new IllegalArgumentException("maxFormParameters must be 1 to 1000000, got " + parameters);
            }
            this.maxFormParameters = parameters;
            return this;
        }

        /**
         * Sets how large a form may be of which a handler asks for parameters. The container's own limit does not apply, because this
         * filter reads the form first: set both to the same. A handler that asks for a parameter of a larger form ends with a 413, in
         * Jetty with a 400.
         *
         * @param bytes 0 to 1 GiB; default that of the container: 2 MiB in Tomcat, 200,000 bytes in Jetty, none in Undertow
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxFormSize(int bytes) {
            this.maxFormSize = size("maxFormSize", bytes);
            return this;
        }

        /**
         * Sets how much memory all requests of this filter may hold together: request bodies with their parts and parameters, responses
         * until they are recorded, and results that are replayed. A response counts six times, because it is copied when it is
         * recorded, and a replay twice. Records that wait for a storage to return have a limit of their own. A request beyond that is
         * refused as {@link Refusal#OVERLOADED} before it runs. A response beyond that goes out unheld, and duplicates of its request
         * are refused as {@link Refusal#RESULT_UNAVAILABLE}.
         *
         * @param bytes at least 1 MiB; default a quarter of the maximum heap
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxMemory(long bytes) {
            if (bytes < 1 << 20) {
                throw new IllegalArgumentException("maxMemory must be at least 1048576 bytes, got " + bytes);
            }
            this.maxMemory = bytes;
            return this;
        }

        /**
         * Sets how long a duplicate may wait for a running request, whatever its {@code Prefer: wait} says.
         *
         * @param longest 0, which never waits, to 10 minutes; default 10 seconds
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxWait(Duration longest) {
            if (longest.isNegative() || longest.compareTo(Duration.ofMinutes(10)) > 0) {
                throw new IllegalArgumentException("maxWait must be 0 to 10 minutes, got " + longest);
            }
            this.maxWait = longest;
            return this;
        }

        private static int size(String name, int bytes) {
            if (bytes < 0 || bytes > 1 << 30) {
                throw new IllegalArgumentException(name + " must be 0 to 1073741824 bytes, got " + bytes);
            }
            return bytes;
        }

        /**
         * Keeps and replays more response headers.
         *
         * @param names header names; never {@code Set-Cookie}, {@code Date}, or one that belongs to a connection or to one caller
         * @return this
         * @throws IllegalArgumentException if a header must not be replayed
         */
        public Builder keepHeaders(String... names) {
            for (String name : names) {
                if (!name.matches("[!#$%&'*+.^_`|~0-9A-Za-z-]+")) {
                    throw new IllegalArgumentException("keepHeaders takes header names, one of them is none");
                }
                if (NEVER_KEPT.contains(name.toLowerCase(Locale.ROOT))) {
                    throw new IllegalArgumentException("keepHeaders cannot keep '" + name
                            + "': it belongs to one connection, one caller or one moment");
                }
                if (keptHeaders.stream().noneMatch(name::equalsIgnoreCase) && !name.equalsIgnoreCase("Content-Type")) {
                    keptHeaders.add(name);
                }
            }
            return this;
        }

        private static final Set<String> NEVER_KEPT = Set.of(
                "set-cookie",
                "date",
                "connection",
                "keep-alive",
                "transfer-encoding",
                "trailer",
                "upgrade",
                "te",
                "content-length",
                "proxy-authenticate",
                "www-authenticate",
                "authorization",
                "retry-after",
                "idempotent-replayed",
                "idempotency-refusal");

        /**
         * Sets what stands before a refusal's code in the {@code type} of a problem.
         *
         * @param base an absolute URI; default {@code urn:idempotence:problem:}
         * @return this
         * @throws IllegalArgumentException if it is not absolute
         */
        public Builder problemBase(URI base) {
            if (!base.isAbsolute()) {
                throw new IllegalArgumentException(
                        "problemBase must be an absolute URI, for example https://docs.example.com/problems/");
            }
            this.problemBase = base;
            return this;
        }

        /**
         * The filter.
         *
         * @return a new filter
         */
        public IdempotenceFilter build() {
            return new IdempotenceFilter(this);
        }

        private FilterConfiguration configuration() {
            return new FilterConfiguration(
                    policy,
                    List.copyOf(operations),
                    methods,
                    keyRequired,
                    header,
                    scope,
                    maxRequestBody,
                    maxResponseBody,
                    maxMemory,
                    maxWait,
                    bodyForm,
                    new FormRules.Limits(maxFormParameters, maxFormSize),
                    List.copyOf(keptHeaders),
                    problemBase.toASCIIString());
        }
    }
}
