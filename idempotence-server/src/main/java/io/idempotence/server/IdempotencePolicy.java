package io.idempotence.server;

import io.idempotence.FailureRule;
import io.idempotence.OnAbandoned;
import io.idempotence.internal.Causes;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The rules of an operation for its IDs: how long claims and records live, and what happens after a failure or a crash. Defaults:
 *
 * <ul>
 *   <li>{@link #lease()}: 30 seconds
 *   <li>{@link #retention()}: 24 hours
 *   <li>{@link #failureRule()}: {@link FailureRule#RELEASE_ON_SYSTEM_FAILURE}
 *   <li>{@link #onAbandoned()}: {@link OnAbandoned#REFUSE}
 *   <li>{@link #completion()}: {@link Completion#BEFORE_RESPONSE}
 * </ul>
 *
 * <p>Immutable and thread-safe.
 */
public final class IdempotencePolicy {
    private static final IdempotencePolicy DEFAULTS = builder().build();

    private final Duration lease;
    private final Duration retention;
    private final FailureRule failureRule;
    private final OnAbandoned onAbandoned;
    private final Completion completion;
    private final Recovery recovery;
    private final Map<Integer, Verdict> verdicts;
    private final Map<Class<? extends Throwable>, Verdict> exceptions;

    private IdempotencePolicy(Builder builder) {
        this.lease = builder.lease;
        this.retention = builder.retention;
        this.failureRule = builder.failureRule;
        this.onAbandoned = builder.onAbandoned;
        this.completion = builder.completion;
        this.recovery = builder.recovery;
        this.verdicts = Map.copyOf(builder.verdicts);
        this.exceptions = Map.copyOf(builder.exceptions);
    }

    /** A rule that finds out whether an abandoned execution took effect, for example by looking for its payment. Thread-safe. */
    @FunctionalInterface
    public interface Recovery {
        /**
         * Finds out whether the execution took effect. Called on the thread of the attempt that met it. The abandoned execution may still
         * come back to life. So return {@link Applied#NO} only if it can no longer take effect, for example because the business data is
         * fenced.
         *
         * @param call the attempt. Look for its operation, scope and ID: IDs of different operations and scopes may be equal. A filter's
         *     call has the scope that the filter's {@code RequestScope} returns, and no operation: give each operation's requests a
         *     policy with its own rule
         * @param fence the fence of the abandoned execution
         * @return what was found. An exception counts as {@link Applied#UNKNOWN}, and the listener gets {@link
         *     IdempotenceEvent#UNKNOWN}
         * @throws Exception if it cannot find out
         */
        Applied wasApplied(IdempotentCall call, long fence) throws Exception;
    }

    /** The finding of a {@link Recovery}. */
    public enum Applied {
        /** It took effect: the ID is completed without a response. */
        YES,
        /** It took no effect: the next attempt runs. */
        NO,
        /** It cannot be determined: later attempts are refused as outcome-unknown. */
        UNKNOWN
    }

    /**
     * The time at which the result of a handler is recorded. Releases, unknown outcomes and error pages are always recorded before the
     * response leaves.
     */
    public enum Completion {
        /** Before the response leaves: a caller that has seen it gets it again. */
        BEFORE_RESPONSE,
        /**
         * After the response has left, usually within milliseconds: a crash in that time shows as an abandoned execution instead of a
         * replay. It never leads to a second execution by itself, so it cannot be combined with {@link OnAbandoned#RE_EXECUTE}.
         */
        AFTER_RESPONSE
    }

    /** The policy with every default of this class. */
    public static IdempotencePolicy defaults() {
        return DEFAULTS;
    }

    /** A builder with every default. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * How long a claim holds if its owner dies. While its handler runs, a claim is renewed after each third of the lease. So the lease is
     * how long a crash stays undetected, and how long the storage may be unreachable or the process paused without an alarm.
     *
     * @return 30 seconds by default
     */
    public Duration lease() {
        return lease;
    }

    /**
     * How long an ID is remembered, from its claim and again from its completion. After that time the same ID runs again (promise P2).
     *
     * @return 24 hours by default
     */
    public Duration retention() {
        return retention;
    }

    /** {@return which failures keep the ID; by default {@link FailureRule#RELEASE_ON_SYSTEM_FAILURE}} */
    public FailureRule failureRule() {
        return failureRule;
    }

    /** {@return the treatment of an abandoned execution; by default {@link OnAbandoned#REFUSE}} */
    public OnAbandoned onAbandoned() {
        return onAbandoned;
    }

    /**
     * When the result is recorded.
     *
     * @return {@link Completion#BEFORE_RESPONSE} by default
     */
    public Completion completion() {
        return completion;
    }

    /**
     * The verdict about an ID after a response with a status.
     *
     * @param status an HTTP status
     * @return the verdict set for the status, else the failure rule's
     */
    public Verdict ofStatus(int status) {
        Verdict verdict = verdicts.get(status);
        return verdict != null ? verdict : byFailureRule(status);
    }

    /**
     * The verdict about an ID after an exception that left the handler.
     *
     * @param exception what was thrown
     * @return the verdict set for its class or the nearest superclass; else that of the nearest cause that has one, because containers
     *     and frameworks wrap exceptions; else the failure rule's
     */
    public Verdict ofException(Throwable exception) {
        return setFor(exception).orElseGet(this::byFailureRule);
    }

    /** The verdict that was set for an exception, as {@link #ofException} finds it; empty if there is none. */
    Optional<Verdict> setFor(Throwable exception) {
        return Causes.of(exception)
                .flatMap(thrown -> Stream.<Class<?>>iterate(thrown.getClass(), Objects::nonNull, Class::getSuperclass))
                .map(exceptions::get)
                .filter(Objects::nonNull)
                .findFirst();
    }

    private Verdict byFailureRule(int status) {
        boolean systemFailure = status >= 500 || status == 408 || status == 425 || status == 429;
        boolean fails = failureRule == FailureRule.STORE_SUCCESS_ONLY ? status >= 400 : systemFailure;
        return fails ? byFailureRule() : Verdict.KEEP;
    }

    /** The failure rule's verdict for a failure that may succeed when it runs again. */
    private Verdict byFailureRule() {
        return switch (failureRule) {
            case RELEASE_ON_SYSTEM_FAILURE, STORE_SUCCESS_ONLY -> Verdict.RELEASE;
            case RELEASE_IF_NOTHING_TOOK_EFFECT -> Verdict.UNKNOWN;
            case STORE_EVERYTHING -> Verdict.KEEP;
        };
    }

    Recovery recovery() {
        return recovery;
    }

    /** A builder with the rules of this policy, for one that differs in a few of them. */
    public Builder toBuilder() {
        Builder builder = builder();
        builder.lease = lease;
        builder.retention = retention;
        builder.failureRule = failureRule;
        builder.onAbandoned = onAbandoned;
        builder.completion = completion;
        builder.recovery = recovery;
        builder.verdicts.putAll(verdicts);
        builder.exceptions.putAll(exceptions);
        return builder;
    }

    /** A builder of an {@link IdempotencePolicy}. Its setters return it. Not thread-safe. */
    public static final class Builder {
        private Duration lease = Duration.ofSeconds(30);
        private Duration retention = Duration.ofHours(24);
        private FailureRule failureRule = FailureRule.RELEASE_ON_SYSTEM_FAILURE;
        private OnAbandoned onAbandoned = OnAbandoned.REFUSE;
        private Completion completion = Completion.BEFORE_RESPONSE;
        private Recovery recovery = (call, fence) -> Applied.UNKNOWN;
        private final Map<Integer, Verdict> verdicts = new TreeMap<>();
        private final Map<Class<? extends Throwable>, Verdict> exceptions = new HashMap<>();

        private Builder() {}

        /**
         * Sets the lease.
         *
         * @param lease 10 ms to 1 day; default 30 seconds
         * @throws IllegalArgumentException if out of range
         */
        public Builder lease(Duration lease) {
            this.lease = within("lease", lease, Duration.ofMillis(10), Duration.ofDays(1));
            return this;
        }

        /**
         * Sets the retention.
         *
         * @param retention 10 ms to 400 days, not shorter than the lease; default 24 hours
         * @throws IllegalArgumentException if out of range
         */
        public Builder retention(Duration retention) {
            this.retention = within("retention", retention, Duration.ofMillis(10), Duration.ofDays(400));
            return this;
        }

        /** Sets which failures keep the ID. */
        public Builder failureRule(FailureRule rule) {
            this.failureRule = Objects.requireNonNull(rule, "rule");
            return this;
        }

        /**
         * Sets the treatment of an abandoned execution.
         *
         * @param onAbandoned {@code REFUSE} or {@code RE_EXECUTE}; for {@code RECOVER} call {@link #recover}
         * @throws IllegalArgumentException if it is {@code RECOVER}, which needs a rule
         */
        public Builder onAbandoned(OnAbandoned onAbandoned) {
            if (onAbandoned == OnAbandoned.RECOVER) {
                throw new IllegalArgumentException("RECOVER needs a recovery rule; call recover(...) instead");
            }
            this.onAbandoned = Objects.requireNonNull(onAbandoned, "onAbandoned");
            return this;
        }

        /**
         * Sets {@link OnAbandoned#RECOVER} with the rule to use.
         *
         * @param recovery finds out whether an abandoned execution took effect
         */
        public Builder recover(Recovery recovery) {
            this.recovery = Objects.requireNonNull(recovery, "recovery");
            this.onAbandoned = OnAbandoned.RECOVER;
            return this;
        }

        /**
         * Sets when the result is recorded.
         *
         * @param completion default {@link Completion#BEFORE_RESPONSE}
         */
        public Builder completion(Completion completion) {
            this.completion = Objects.requireNonNull(completion, "completion");
            return this;
        }

        /**
         * Sets the verdict for exceptions of a class and its subclasses. It overrides the failure rule. It also overrides the verdict of a
         * status, for an exception that a framework renders as a response ({@link ClaimedExecution#rendered}).
         *
         * @param type the class; of several, the nearest superclass counts
         * @param verdict the decision about the ID
         */
        public Builder exception(Class<? extends Throwable> type, Verdict verdict) {
            exceptions.put(Objects.requireNonNull(type, "type"), Objects.requireNonNull(verdict, "verdict"));
            return this;
        }

        /**
         * Sets the verdict for one status. It overrides the failure rule.
         *
         * @param status 200 to 599
         * @param verdict the decision about the ID
         * @throws IllegalArgumentException if {@code status} is out of range
         */
        public Builder status(int status, Verdict verdict) {
            if (status < 200 || status > 599) {
                throw new IllegalArgumentException("status must be a final HTTP status, 200 to 599, got " + status);
            }
            verdicts.put(status, Objects.requireNonNull(verdict, "verdict"));
            return this;
        }

        /**
         * The policy.
         *
         * @return an immutable policy
         * @throws IllegalArgumentException if the retention is shorter than the lease, or if an operation that runs again after a crash
         *     is to be completed after its response
         */
        public IdempotencePolicy build() {
            if (retention.compareTo(lease) < 0) {
                throw new IllegalArgumentException("retention (" + retention + ") must not be shorter than lease ("
                        + lease + "): a running handler would be forgotten; raise retention or lower lease");
            }
            if (completion == Completion.AFTER_RESPONSE && onAbandoned == OnAbandoned.RE_EXECUTE) {
                throw new IllegalArgumentException(
                        "completion AFTER_RESPONSE cannot be combined with onAbandoned RE_EXECUTE: a crash after the"
                                + " response would run the operation again; use BEFORE_RESPONSE, or REFUSE or RECOVER");
            }
            return new IdempotencePolicy(this);
        }

        private static Duration within(String name, Duration value, Duration min, Duration max) {
            if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
                throw new IllegalArgumentException(name + " must be " + min + " to " + max + ", got " + value);
            }
            return value;
        }
    }

    /** The decision about an ID when its handler ends. */
    public enum Verdict {
        /** The response is recorded and replayed. The ID never runs again. */
        KEEP,
        /** The ID is released. The next attempt runs. */
        RELEASE,
        /** The outcome is unknown. The ID is refused until a person or a rule decides (promise P6). */
        UNKNOWN
    }
}
