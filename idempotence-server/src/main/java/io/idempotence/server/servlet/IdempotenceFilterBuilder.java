package io.idempotence.server.servlet;

import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.http.Refusal;
import io.idempotence.internal.MaxWait;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;

/** The builder of an {@link IdempotenceFilter}. Its setters return it. Not thread-safe. */
public final class IdempotenceFilterBuilder {
    /** The response headers that are always kept, besides Content-Type, which belongs to the body. */
    private static final List<String> KEPT = List.of(
            "Content-Language",
            "Content-Disposition",
            "Content-Encoding",
            "Content-Range",
            "Location",
            "Content-Location",
            "ETag",
            "Last-Modified",
            "Link",
            "Cache-Control");

    /** The response headers that must not be replayed. */
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

    private final Idempotence idempotence;
    private IdempotencePolicy policy;
    private final List<Function<Duration, FilterConfiguration.OperationPolicy>> operations = new ArrayList<>();
    private Set<String> methods = Set.of("POST", "PATCH");
    private boolean idRequired = true;
    private IdempotencyKeyHeader header = IdempotencyKeyHeader.standard();
    private RequestScope scope = RequestScope.principal();
    private BodyComparison bodyComparison = BodyComparison.bytes();
    private int maxRequestBody = 10 << 20;
    private int maxResponseBody = 1 << 20;
    private int maxFormParameters = -1;
    private int maxFormSize = -1;
    private long maxMemory = Runtime.getRuntime().maxMemory() / 4;
    private Duration maxWait = Duration.ofSeconds(10);
    private URI problemBase = URI.create("urn:idempotence:problem:");
    private final List<String> keptHeaders = new ArrayList<>(KEPT);

    IdempotenceFilterBuilder(Idempotence idempotence) {
        this.idempotence = idempotence;
        this.policy = idempotence.policy();
    }

    /**
     * Sets the policy of all operations behind this filter that have none of their own.
     *
     * @param policy default: that of the {@link Idempotence}
     */
    public IdempotenceFilterBuilder policy(IdempotencePolicy policy) {
        this.policy = Objects.requireNonNull(policy, "policy");
        return this;
    }

    /**
     * Sets the policy of one operation. If several cover a request, the first counts. Other options that differ by operation, such as
     * {@link #methods} or {@link #maxRequestBody}, need a filter of their own, on paths of its own: the first filter that covers a request
     * decides about it.
     *
     * @param requests a URL pattern relative to the context, or a method, a space and a URL pattern: {@code /points/*},
     *     {@code POST /accounts/{id}/charges}, where a name in braces matches one segment
     * @param policy the policy of these requests
     * @throws IllegalArgumentException if {@code requests} is not of this form
     */
    public IdempotenceFilterBuilder operation(String requests, IdempotencePolicy policy) {
        Objects.requireNonNull(policy, "policy");
        int space = requests.indexOf(' ');
        String method = space < 0 ? "" : unsafe(requests.substring(0, space));
        UrlPattern pattern = UrlPattern.of(requests.substring(space + 1));
        operations.add(longest -> new FilterConfiguration.OperationPolicy(
                method, pattern, FilterConfiguration.PolicySettings.of(policy, longest)));
        return this;
    }

    /**
     * Sets the methods that must carry an ID. Another unsafe method, such as PUT, is protected if it carries one.
     *
     * @param methods default: POST and PATCH
     * @throws IllegalArgumentException if there is none, or if one is GET, HEAD, OPTIONS or TRACE
     */
    public IdempotenceFilterBuilder methods(String... methods) {
        Set<String> set = new TreeSet<>();
        for (String method : methods) {
            set.add(unsafe(method));
        }
        if (set.isEmpty()) {
            throw new IllegalArgumentException("methods is empty; pass at least one method, for example POST");
        }
        this.methods = Set.copyOf(set);
        return this;
    }

    private static String unsafe(String method) {
        String upper = method.toUpperCase(Locale.ROOT);
        if (upper.isBlank() || FilterConfiguration.SAFE_METHODS.contains(upper)) {
            throw new IllegalArgumentException((upper.isBlank() ? "a method is blank" : upper + " is a safe method")
                    + "; methods may be POST, PATCH, PUT, DELETE or one of your own, not GET, HEAD, OPTIONS or TRACE");
        }
        return upper;
    }

    /** Lets requests without an ID through, unprotected. By default they are refused as key-missing. */
    public IdempotenceFilterBuilder idOptional() {
        this.idRequired = false;
        return this;
    }

    /**
     * Sets the allowed form of the ID.
     *
     * @param header default: {@link IdempotencyKeyHeader#standard()}
     */
    public IdempotenceFilterBuilder header(IdempotencyKeyHeader header) {
        this.header = Objects.requireNonNull(header, "header");
        return this;
    }

    /**
     * Sets to whom an ID belongs. Equal IDs in different scopes are different IDs.
     *
     * @param scope default: {@link RequestScope#principal()}; with tenants
     *     {@code RequestScope.header("X-Tenant").and(RequestScope.principal())}
     */
    public IdempotenceFilterBuilder scope(RequestScope scope) {
        this.scope = Objects.requireNonNull(scope, "scope");
        return this;
    }

    /**
     * Sets how the bodies of two requests under one ID are compared.
     *
     * @param comparison default: {@link BodyComparison#bytes()}. After a change, retries of requests from before it are refused as
     *     key-reused (422)
     */
    public IdempotenceFilterBuilder bodyComparison(BodyComparison comparison) {
        this.bodyComparison = Objects.requireNonNull(comparison, "comparison");
        return this;
    }

    /**
     * Sets the largest request body. A larger request gets 413 and does not run.
     *
     * @param bytes 0 to 1 GiB; default 10 MiB
     * @throws IllegalArgumentException if out of range
     */
    public IdempotenceFilterBuilder maxRequestBody(int bytes) {
        this.maxRequestBody = size("maxRequestBody", bytes);
        return this;
    }

    /**
     * Sets the largest response body that is stored. A larger one is sent but not stored.
     *
     * @param bytes 0 to 1 GiB; default 1 MiB
     * @throws IllegalArgumentException if out of range
     */
    public IdempotenceFilterBuilder maxResponseBody(int bytes) {
        this.maxResponseBody = size("maxResponseBody", bytes);
        return this;
    }

    /**
     * Sets how many parameters a form may have. The container's own limit does not apply, because this filter reads the form first. Set
     * both to the same value. A handler that asks for a parameter of a larger form ends with a 400, in Undertow with a 500.
     *
     * @param parameters 1 to 1,000,000; default: the container's, 1,000, in Tomcat 10.1 10,000. In Jetty, names are counted
     * @throws IllegalArgumentException if out of range
     */
    public IdempotenceFilterBuilder maxFormParameters(int parameters) {
        if (parameters < 1 || parameters > 1_000_000) {
            throw new IllegalArgumentException("maxFormParameters must be 1 to 1000000, got " + parameters);
        }
        this.maxFormParameters = parameters;
        return this;
    }

    /**
     * Sets how large a form may be if a handler asks for its parameters. The container's own limit does not apply, because this filter
     * reads the form first. Set both to the same value. A handler that asks for a parameter of a larger form ends with a 413, in Jetty with
     * a 400.
     *
     * @param bytes 0 to 1 GiB; default: the container's, 2 MiB in Tomcat, 200,000 bytes in Jetty, none in Undertow
     * @throws IllegalArgumentException if out of range
     */
    public IdempotenceFilterBuilder maxFormSize(int bytes) {
        this.maxFormSize = size("maxFormSize", bytes);
        return this;
    }

    /**
     * Sets how much memory all requests of this filter may hold together: request bodies with their parts and parameters, responses until
     * they are recorded, and replayed results. A response counts six times, because it is copied when it is recorded. A replay counts
     * twice; until it is loaded, one as large as the last ones counts. Records that wait for a storage to return have their own limit. A
     * request beyond the limit is refused as {@link Refusal#OVERLOADED} before it runs. A response beyond the limit is sent without being
     * held, and duplicates of its request are refused as {@link Refusal#RESULT_UNAVAILABLE}.
     *
     * @param bytes at least 1 MiB; default: a quarter of the maximum heap
     * @throws IllegalArgumentException if out of range
     */
    public IdempotenceFilterBuilder maxMemory(long bytes) {
        if (bytes < 1 << 20) {
            throw new IllegalArgumentException("maxMemory must be at least 1048576 bytes, got " + bytes);
        }
        this.maxMemory = bytes;
        return this;
    }

    /**
     * Sets how long a duplicate may wait for a running request, even if its {@code Prefer: wait} asks for more.
     *
     * @param longest 0, which never waits, to 10 minutes; default 10 seconds
     * @throws IllegalArgumentException if out of range
     */
    public IdempotenceFilterBuilder maxWait(Duration longest) {
        this.maxWait = MaxWait.checked(longest);
        return this;
    }

    private static int size(String name, int bytes) {
        if (bytes < 0 || bytes > 1 << 30) {
            throw new IllegalArgumentException(name + " must be 0 to 1073741824 bytes, got " + bytes);
        }
        return bytes;
    }

    /**
     * Stores and replays more response headers.
     *
     * @param names header names; never {@code Set-Cookie}, {@code Date}, or one that belongs to a connection or to one caller
     * @throws IllegalArgumentException if a name is not a header name, or if the header must not be replayed
     */
    public IdempotenceFilterBuilder keepHeaders(String... names) {
        for (String name : names) {
            checkKept(name);
            if (keptHeaders.stream().noneMatch(name::equalsIgnoreCase) && !name.equalsIgnoreCase("Content-Type")) {
                keptHeaders.add(name);
            }
        }
        return this;
    }

    private static void checkKept(String name) {
        if (!HeaderNames.isValid(name)) {
            throw new IllegalArgumentException(
                    "keepHeaders expects header names, and one of these is not a header name; pass names such as X-Request-Id");
        }
        if (NEVER_KEPT.contains(name.toLowerCase(Locale.ROOT))) {
            throw new IllegalArgumentException(
                    "keepHeaders cannot keep '" + name + "': it belongs to one connection, one caller or one moment");
        }
    }

    /**
     * Sets the prefix of a problem's {@code type}; the refusal's code follows it.
     *
     * @param base an absolute URI; default {@code urn:idempotence:problem:}
     * @throws IllegalArgumentException if it is not absolute
     */
    public IdempotenceFilterBuilder problemBase(URI base) {
        if (!base.isAbsolute()) {
            throw new IllegalArgumentException(
                    "problemBase must be an absolute URI, for example https://docs.example.com/problems/");
        }
        this.problemBase = base;
        return this;
    }

    /** Builds the filter. */
    public IdempotenceFilter build() {
        return new IdempotenceFilter(idempotence.engine(), configuration());
    }

    private FilterConfiguration configuration() {
        return new FilterConfiguration(
                FilterConfiguration.PolicySettings.of(policy, maxWait),
                operations.stream().map(operation -> operation.apply(maxWait)).toList(),
                methods,
                idRequired,
                header,
                scope,
                maxRequestBody,
                maxResponseBody,
                maxMemory,
                bodyComparison,
                new FormRules.Limits(maxFormParameters, maxFormSize),
                List.copyOf(keptHeaders),
                problemBase.toASCIIString());
    }
}
