package io.idempotence.spring.method;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.OnAbandoned;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The attributes of an {@code @Idempotent}, read and checked. What is null is as configured.
 *
 * @param isIdempotent false for {@code @Idempotent(false)}
 */
record OperationSettings(
        boolean isIdempotent,
        boolean required,
        @Nullable Duration retention,
        @Nullable Duration lease,
        @Nullable FailureRule failureRule,
        Map<Class<? extends Throwable>, Verdict> verdicts,
        @Nullable OnAbandoned onAbandoned,
        @Nullable Duration maxWait) {

    /** @param faults gets what contradicts itself or cannot be read */
    static OperationSettings of(Idempotent annotation, OperationFaults faults) {
        if (!annotation.value() && hasMore(annotation)) {
            faults.add(
                    "@Idempotent(false) has other attributes, which mean nothing there",
                    "Remove the other attributes, or remove the false.");
        }
        return new OperationSettings(
                annotation.value(),
                annotation.required(),
                faults.duration("retention", annotation.retention()),
                faults.duration("lease", annotation.lease()),
                faults.atMostOne("failureRule", annotation.failureRule()),
                verdicts(annotation, faults),
                faults.atMostOne("onAbandoned", annotation.onAbandoned()),
                faults.duration("maxWait", annotation.maxWait()));
    }

    private static boolean hasMore(Idempotent annotation) {
        return !annotation.required()
                || !annotation.id().isEmpty()
                || !annotation.operation().isEmpty()
                || !annotation.retention().isEmpty()
                || !annotation.lease().isEmpty()
                || !annotation.maxWait().isEmpty()
                || annotation.failureRule().length + annotation.onAbandoned().length > 0
                || annotation.keepOn().length + annotation.releaseOn().length > 0;
    }

    private static Map<Class<? extends Throwable>, Verdict> verdicts(Idempotent annotation, OperationFaults faults) {
        Map<Class<? extends Throwable>, Verdict> verdicts = new LinkedHashMap<>();
        for (Class<? extends Throwable> type : annotation.keepOn()) {
            verdicts.put(type, Verdict.KEEP);
        }
        for (Class<? extends Throwable> type : annotation.releaseOn()) {
            if (verdicts.put(type, Verdict.RELEASE) == Verdict.KEEP) {
                faults.add(
                        "keepOn and releaseOn both have " + type.getSimpleName(),
                        "Remove " + type.getSimpleName() + " from keepOn or from releaseOn.");
            }
        }
        return verdicts;
    }

    /** Returns whether the operation needs a recovery rule and the application has none, which is a fault. */
    boolean lacksRecovery(IdempotencePolicy.@Nullable Recovery recovery, OperationFaults faults) {
        boolean lacks = onAbandoned == OnAbandoned.RECOVER && recovery == null;
        if (lacks) {
            faults.add(
                    "onAbandoned = RECOVER needs one bean of type IdempotencePolicy.Recovery, which finds out whether an"
                            + " abandoned execution took effect",
                    "Declare one bean of IdempotencePolicy.Recovery, mark one as @Primary, or choose another onAbandoned.");
        }
        return lacks;
    }

    /** How to fix a fault of {@link #policy}, without a full stop: the attributes that the annotation sets and the fault names. */
    String fix(String fault) {
        Map<String, @Nullable Object> attributes = new LinkedHashMap<>();
        attributes.put("retention", retention);
        attributes.put("lease", lease);
        attributes.put("maxWait", maxWait);
        attributes.put("onAbandoned", onAbandoned);
        String named = attributes.entrySet().stream()
                .filter(each -> each.getValue() != null && fault.contains(each.getKey()))
                .map(Map.Entry::getKey)
                .collect(Collectors.joining(" or "));
        return "Change " + (named.isEmpty() ? "the attributes" : named) + " of @Idempotent";
    }

    /**
     * The policy of the operation.
     *
     * @param configured the policy of operations that set nothing
     * @param recovery the application's recovery rule; not null if the operation {@linkplain #lacksRecovery needs it}
     * @throws IllegalArgumentException if a value is out of range, or if they do not fit together
     */
    IdempotencePolicy policy(IdempotencePolicy configured, IdempotencePolicy.@Nullable Recovery recovery) {
        IdempotencePolicy.Builder policy = configured.toBuilder();
        if (retention != null) {
            policy.retention(retention);
        }
        if (lease != null) {
            policy.lease(lease);
        }
        if (failureRule != null) {
            policy.failureRule(failureRule);
        }
        verdicts.forEach(policy::exception);
        if (onAbandoned == OnAbandoned.RECOVER) {
            policy.recover(Objects.requireNonNull(recovery, "recovery"));
        } else if (onAbandoned != null) {
            policy.onAbandoned(onAbandoned);
            if (onAbandoned == OnAbandoned.RE_EXECUTE) {
                // The annotation of an operation is stronger than a property for all.
                policy.completion(IdempotencePolicy.Completion.BEFORE_RESPONSE);
            }
        }
        return policy.build();
    }
}
