package io.idempotence.server;

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;

/**
 * How an operation treats its IDs: how long a claim and a record live, what a failure does, what an abandoned execution does.
 *
 * <ul>
 *   <li>{@link #lease()}: 30 seconds
 *   <li>{@link #retention()}: 24 hours
 *   <li>{@link #failureRule()}: {@link FailureRule#RELEASE_ON_SYSTEM_FAILURE}
 *   <li>{@link #onAbandoned()}: {@link OnAbandoned#REFUSE}
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
    private final Map<Integer, Verdict> verdicts;

    private IdempotencePolicy(Builder builder) {
        this.lease = builder.lease;
        this.retention = builder.retention;
        this.failureRule = builder.failureRule;
        this.onAbandoned = builder.onAbandoned;
        this.verdicts = Map.copyOf(builder.verdicts);
    }

    /** What happens to an ID whose execution broke off: claimed, lease over, nothing recorded. */
    public enum OnAbandoned {
        /** Later attempts are refused as outcome-unknown until a person decides (T6). The default. */
        REFUSE,
        /** The next attempt runs (T7). Only for operations that are harmless to run twice. */
        RE_EXECUTE
    }

    /**
     * Every default as listed above.
     *
     * @return the policy
     */
    public static IdempotencePolicy defaults() {
        return DEFAULTS;
    }

    /**
     * A builder that has every default.
     *
     * @return a new builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * How long a claim holds if its owner disappears. While its handler runs a claim is renewed after each third of it; so the lease is how long
     * a crash stays unnoticed, and how long the storage may be away or the process be paused without an alarm.
     *
     * @return 30 seconds by default
     */
    public Duration lease() {
        return lease;
    }

    /**
     * How long an ID is remembered, from its claim and again from its completion. After that the same ID runs again (promise P2).
     *
     * @return 24 hours by default
     */
    public Duration retention() {
        return retention;
    }

    /**
     * Which failures keep the ID.
     *
     * @return {@link FailureRule#RELEASE_ON_SYSTEM_FAILURE} by default
     */
    public FailureRule failureRule() {
        return failureRule;
    }

    /**
     * What an abandoned execution does.
     *
     * @return {@link OnAbandoned#REFUSE} by default
     */
    public OnAbandoned onAbandoned() {
        return onAbandoned;
    }

    /**
     * What an answer of this status does.
     *
     * @param status an HTTP status
     * @return the verdict set for the status, else the failure rule's
     */
    public Verdict ofStatus(int status) {
        Verdict verdict = verdicts.get(status);
        return verdict != null ? verdict : failureRule.ofStatus(status);
    }

    /**
     * What an exception that left the handler does.
     *
     * @param exception what was thrown
     * @return the failure rule's verdict
     */
    public Verdict ofException(Throwable exception) {
        return failureRule.ofException();
    }

    /** Builds an {@link IdempotencePolicy}. Not thread-safe. */
    public static final class Builder {
        private Duration lease = Duration.ofSeconds(30);
        private Duration retention = Duration.ofHours(24);
        private FailureRule failureRule = FailureRule.RELEASE_ON_SYSTEM_FAILURE;
        private OnAbandoned onAbandoned = OnAbandoned.REFUSE;
        private final Map<Integer, Verdict> verdicts = new TreeMap<>();

        private Builder() {}

        /**
         * Sets the lease.
         *
         * @param lease 10 ms to 1 day; default 30 seconds
         * @return this
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
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder retention(Duration retention) {
            this.retention = within("retention", retention, Duration.ofMillis(10), Duration.ofDays(400));
            return this;
        }

        /**
         * Sets which failures keep the ID.
         *
         * @param rule the rule
         * @return this
         */
        public Builder failureRule(FailureRule rule) {
            this.failureRule = rule;
            return this;
        }

        /**
         * Sets what an abandoned execution does.
         *
         * @param onAbandoned the choice
         * @return this
         */
        public Builder onAbandoned(OnAbandoned onAbandoned) {
            this.onAbandoned = onAbandoned;
            return this;
        }

        /**
         * Sets the verdict on one status, over the failure rule.
         *
         * @param status 200 to 599
         * @param verdict what it does
         * @return this
         * @throws IllegalArgumentException if {@code status} is out of range
         */
        public Builder status(int status, Verdict verdict) {
            if (status < 200 || status > 599) {
                throw new IllegalArgumentException("status must be a final HTTP status, 200 to 599, got " + status);
            }
            verdicts.put(status, verdict);
            return this;
        }

        /**
         * The policy.
         *
         * @return an immutable policy
         * @throws IllegalArgumentException if the retention is shorter than the lease
         */
        public IdempotencePolicy build() {
            if (retention.compareTo(lease) < 0) {
                throw new IllegalArgumentException("retention (" + retention + ") must not be shorter than lease ("
                        + lease + "): a running handler would be forgotten; raise retention or lower lease");
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
}
