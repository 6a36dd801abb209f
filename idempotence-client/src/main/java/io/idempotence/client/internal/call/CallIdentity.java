package io.idempotence.client.internal.call;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.ScopeHistory;
import io.idempotence.http.IdempotencyKeyHeader;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Whether a logical call carries an ID, and which (promise P1). Its first request decides: the ID is its caller's own, else its scope's,
 * else derived from the inbound request whose handler makes the call, else a new one. Thread-safe.
 */
public final class CallIdentity {
    private static final IdempotencyKeyHeader GRAMMAR = IdempotencyKeyHeader.standard();

    private final ClientOperation operation;
    private final Supplier<String> name;
    private final @Nullable CallScope scope;
    private final @Nullable InboundRequest inbound;
    private final ScopeHistory alone;
    private final AtomicReference<@Nullable Chosen> decision = new AtomicReference<>();
    private final ScopeHistory.Call withoutId;
    private volatile ScopeHistory.Call history;
    private final AtomicBoolean began = new AtomicBoolean();

    /** @param line of the header with the ID, or null for a call that carries none */
    private record Chosen(@Nullable String line) {}

    /**
     * @param name names the call to its scope
     * @param scope the scope it is made in, or null if there is none
     * @param inbound the request whose handler makes it, or null if there is none
     * @param alone keeps its ID and its doubt where no scope does
     */
    public CallIdentity(
            ClientOperation operation,
            Supplier<String> name,
            @Nullable CallScope scope,
            @Nullable InboundRequest inbound,
            ScopeHistory alone) {
        this.operation = operation;
        this.name = name;
        this.scope = scope;
        this.inbound = inbound;
        this.alone = alone;
        this.withoutId = alone.newCall();
        this.history = withoutId;
    }

    /** The ID that the lines of a header give. Also refuses what a client would write verbatim and a server would read as two headers. */
    public static IdempotenceId parse(List<String> lines) {
        return GRAMMAR.parse(lines).orElseThrow();
    }

    /**
     * The line of the header on each request of the call. Within a scope, the call begins in the doubt about earlier ones under the ID,
     * and its own doubt is the next one's.
     *
     * @param lines of the header, as the caller gives them
     * @param usual the ID without header and scope: {@link #usual}
     * @return null if the call carries no ID, and so is as without this project: no retry, no deadline
     * @throws IllegalStateException if two calls would share the ID, or if the server half may have forgotten it
     */
    public @Nullable String decide(String httpMethod, List<String> lines, Supplier<IdempotenceId> usual) {
        if (decision.get() == null) {
            // Two threads may begin the same call (hedging): the first one's ID is the call's.
            decision.compareAndSet(null, new Chosen(lineOf(httpMethod, lines, usual)));
        }
        return line();
    }

    private @Nullable String lineOf(String httpMethod, List<String> lines, Supplier<IdempotenceId> usual) {
        if (!operation.carriesId(httpMethod, !lines.isEmpty())) {
            return null;
        }
        if (!lines.isEmpty()) {
            begin(parse(lines), usual);
            return lines.get(0);
        }
        return GRAMMAR.format(begin(null, usual), operation.config().headerStyle());
    }

    /**
     * The ID of a call that nobody gives one.
     *
     * @param method names the operation among those of its client
     * @param target where the request goes
     * @param body what it sends, or null if that is not known or not the same each time
     */
    public IdempotenceId usual(String method, String target, byte @Nullable [] body) {
        return inbound == null
                ? operation.config().generator().generateId()
                : inbound.idOfNextCall(operation.client(), method, target, body);
    }

    /**
     * The call could not be made, and no request decided anything: if an earlier one under the ID is in doubt, it is so still.
     *
     * @param own the caller gives an ID of his own
     * @param lines of its header, empty if they are not known
     */
    public void keepDoubt(boolean own, List<String> lines) {
        boolean asks = scope != null && scope.isInDoubt() && (!own || scope.isResumed());
        if (asks || alone.isInDoubt()) {
            begin(lines.isEmpty() ? null : parse(lines), () -> {
                throw new IllegalStateException("a call in doubt has an ID");
            });
        }
    }

    private IdempotenceId begin(@Nullable IdempotenceId own, Supplier<IdempotenceId> usual) {
        ScopeHistory.Call begun = scope == null
                ? alone.begin(this::checkRetention, own, usual)
                : scope.begin(name.get(), this::checkRetention, own, usual, alone);
        if (began.compareAndSet(false, true)) {
            history = begun;
        }
        return begun.id();
    }

    /** An ID that the server half has forgotten would be a new one to it. */
    private void checkRetention(Instant firstSentAt) {
        Instant forgotten = firstSentAt.plus(operation.config().serverRetention());
        if (Instant.now().plus(operation.config().deadline()).isAfter(forgotten)) {
            throw new IllegalStateException("this ID was first sent at " + firstSentAt
                    + ", and the server half may forget it at " + forgotten
                    + " (idempotence.client.server-retention), so the call could be executed again;"
                    + " look into the business data");
        }
    }

    /** The line that {@link #decide} returned; null before that. */
    public @Nullable String line() {
        Chosen decided = decision.get();
        return decided == null ? null : decided.line;
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
        ScopeHistory.Call begun = history;
        return begun == withoutId ? null : begun.id();
    }

    /** The one place that knows of doubt about the call. */
    ScopeHistory.Call history() {
        return history;
    }
}
