package io.idempotence.client.internal.call;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.http.HttpMethods;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import io.idempotence.http.IdempotencyKeyHeader;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The decision whether a logical call carries an ID, and which (promise P1). It is made for the first request: the ID is the caller's own,
 * else the scope's, else derived from the inbound request whose handler makes the call, else a new one. Thread-safe.
 */
public final class CallIdentity {
    private static final IdempotencyKeyHeader GRAMMAR = IdempotencyKeyHeader.standard();

    private final ClientOperation operation;
    private final Supplier<String> name;
    private final CallerContext caller;
    private final ScopeHistory alone;
    private final AtomicReference<@Nullable Chosen> decision = new AtomicReference<>();
    private final ScopeHistory.Call withoutId;
    private final AtomicReference<ScopeHistory.@Nullable Call> withId = new AtomicReference<>();
    private volatile boolean generated;

    /** @param line the line of the header with the ID, or null for a call that carries none */
    private record Chosen(@Nullable String line) {}

    /**
     * @param name the name of the call in its scope
     * @param caller the scope of the call, and the request whose handler makes it
     * @param alone the history of the call if no scope has one
     */
    public CallIdentity(ClientOperation operation, Supplier<String> name, CallerContext caller, ScopeHistory alone) {
        this.operation = operation;
        this.name = name;
        this.caller = caller;
        this.alone = alone;
        this.withoutId = alone.newCall();
    }

    /**
     * Whether a call of an operation carries an ID, whichever it is.
     *
     * @param given whether its caller gives one
     */
    public static boolean carriesId(ClientOperation operation, String httpMethod, boolean given) {
        IdempotenceClientConfig config = operation.config();
        if (HttpMethods.isSafe(httpMethod) || !config.enabled()) {
            return false;
        }
        Boolean annotated = operation.annotated();
        if (annotated != null) {
            return annotated;
        }
        return given || config.methods().contains(httpMethod.toUpperCase(Locale.ROOT));
    }

    /** Parses the ID in the lines of a header. Refuses a value that a client would write verbatim and a server would parse as two headers. */
    public static IdempotenceId parse(List<String> lines) {
        return GRAMMAR.parse(lines).orElseThrow();
    }

    /**
     * Decides once, and returns the header line for every request of the call. Within a scope, the call starts in doubt if an earlier call
     * under the same ID is in doubt, and the next call under the ID inherits its doubt.
     *
     * @param lines the header's lines, as the caller gives them
     * @param method the name of the operation in its client
     * @param target returns the target of the request. Like {@code body}, it is called only if a handler makes the call
     * @param body returns the body, or null if it is unknown or not the same each time
     * @return null if the call carries no ID. It then behaves as without this project: no retry, no deadline
     * @throws IllegalStateException if two calls would share the ID, or if the server half may have forgotten it
     */
    public @Nullable String decide(
            String httpMethod,
            List<String> lines,
            String method,
            Supplier<String> target,
            Supplier<byte @Nullable []> body) {
        if (decision.get() == null) {
            // Two threads may start the same call (hedging): the first one's ID is the call's.
            decision.compareAndSet(null, new Chosen(lineOf(httpMethod, lines, () -> generated(method, target, body))));
        }
        return line();
    }

    private @Nullable String lineOf(String httpMethod, List<String> lines, Supplier<IdempotenceId> usual) {
        if (!carriesId(operation, httpMethod, !lines.isEmpty())) {
            return null;
        }
        if (!lines.isEmpty()) {
            begin(parse(lines), usual);
            return lines.get(0);
        }
        return GRAMMAR.format(begin(null, usual), operation.config().headerStyle());
    }

    /** The ID of a call without a header or scope. */
    private IdempotenceId generated(String method, Supplier<String> target, Supplier<byte @Nullable []> body) {
        generated = true;
        InboundRequest inbound = caller.inbound();
        return inbound == null
                ? operation.config().generator().generateId()
                : inbound.idOfNextCall(operation.client(), method, target.get(), body.get());
    }

    /**
     * Keeps the doubt of a call that could not be made, so that no request has decided its ID. If an earlier call under an ID is in doubt,
     * or the handler of that earlier call failed, this call takes that ID. A call that would carry no ID keeps no doubt.
     *
     * @param own whether the caller gives an ID of its own
     * @param lines the header's lines, empty if they are unknown
     */
    public void keepDoubt(String httpMethod, boolean own, List<String> lines) {
        if (!carriesId(operation, httpMethod, own)) {
            return;
        }
        CallScope scope = caller.scope();
        boolean asks = scope != null && scope.mayHaveTakenEffect() && (!own || scope.isResumed());
        if (asks || alone.mayHaveTakenEffect()) {
            begin(lines.isEmpty() ? null : parse(lines), () -> {
                throw new IllegalStateException("a call that was sent has an ID");
            });
        }
    }

    private IdempotenceId begin(@Nullable IdempotenceId own, Supplier<IdempotenceId> usual) {
        CallScope scope = caller.scope();
        ScopeHistory.Call begun = scope == null
                ? alone.begin(this::checkRetention, own, usual)
                : scope.begin(name.get(), this::checkRetention, own, usual, alone);
        withId.compareAndSet(null, begun);
        return begun.id();
    }

    /** Refuses an ID that the server half may have forgotten, because it would execute the call as a new one. */
    private void checkRetention(Instant firstSentAt) {
        Instant forgotten = firstSentAt.plus(operation.config().serverRetention());
        if (Instant.now().plus(operation.config().deadline()).isAfter(forgotten)) {
            throw new IllegalStateException("this ID was first sent at " + firstSentAt
                    + ", and the server half may forget it at " + forgotten
                    + " (idempotence.client.server-retention), so the call could be executed again;"
                    + " check the business data instead");
        }
    }

    /** The line that {@link #decide} returned; null before. */
    public @Nullable String line() {
        Chosen decided = decision.get();
        return decided == null ? null : decided.line;
    }

    /**
     * Checks, before a request leaves, that it carries the ID of this call and no other (promise P1). A call without an ID has no such
     * check.
     *
     * @param lines the header's lines, as they are about to be sent
     * @throws IllegalStateException if other code replaced, added or removed an ID
     */
    public void requireUnchanged(List<String> lines) {
        String line = line();
        if (line != null && !lines.equals(List.of(line))) {
            throw new IllegalStateException(
                    "another interceptor, an authenticator or a target changed the Idempotency-Key of this call; remove it,"
                            + " or give the ID as a header of the call or with IdempotenceScope");
        }
    }

    /** Whether the call carries an ID, as far as is known before it is decided. A caller's own ID may come as a header later. */
    public boolean willCarryId(String httpMethod) {
        return carriesId() || carriesId(operation, httpMethod, false);
    }

    /** True once it is decided that the call carries an ID. */
    public boolean carriesId() {
        return line() != null;
    }

    /** True once it is decided that the call carries no ID. */
    boolean isPlain() {
        return decision.get() != null && line() == null;
    }

    /** The ID, or null if the call has none. */
    public @Nullable IdempotenceId id() {
        ScopeHistory.Call begun = withId.get();
        return begun == null ? null : begun.id();
    }

    /** Whether this call made its ID or derived it. False if its caller, its scope or an earlier call gave it. */
    boolean isGenerated() {
        return generated;
    }

    /**
     * The history of the call. It stores the doubt that ended attempts and other calls under the ID left. What the requests of one attempt
     * leave open is in its {@link io.idempotence.client.internal.http.Observation}, until the attempt ends.
     */
    ScopeHistory.Call history() {
        ScopeHistory.Call begun = withId.get();
        return begun == null ? withoutId : begun;
    }
}
