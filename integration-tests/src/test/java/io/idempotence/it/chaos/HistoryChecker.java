package io.idempotence.it.chaos;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A check of what callers were told against what happened. Nothing may be double (two effects of a call), lost (a response without its
 * effect, or an effect that its caller was told did not happen), wrong (the response of another call), or stuck (later than deadline and
 * slack, unknown without an incident that explains it, or unknown after everything was repaired).
 */
final class HistoryChecker {
    /** A kind of violation. */
    enum Kind {
        DOUBLE,
        LOST,
        WRONG,
        STUCK,
        TWO_IDS,
        NOBODYS
    }

    /** One thing that is wrong. */
    record Violation(Kind kind, String call, String what) {}

    private final Duration longestCall;
    private final Duration recovery;

    /**
     * @param longestCall deadline and slack
     * @param recovery how long after an incident its consequences may show
     */
    HistoryChecker(Duration longestCall, Duration recovery) {
        this.longestCall = longestCall;
        this.recovery = recovery;
    }

    List<Violation> check(List<Call> calls, List<Effect> ledger, List<Incident> incidents) {
        Map<String, List<Effect>> effectsOf = ledger.stream().collect(Collectors.groupingBy(Effect::call));
        Map<String, Effect> byName = ledger.stream().collect(Collectors.toMap(Effect::name, Function.identity()));
        List<Violation> violations = new ArrayList<>();
        Set<String> known = new HashSet<>();
        for (Call call : calls) {
            known.add(call.name());
            List<Effect> effects = effectsOf.getOrDefault(call.name(), List.of());
            if (effects.size() > 1) {
                violations.add(new Violation(Kind.DOUBLE, call.name(), effects.size() + " effects: " + effects));
            }
            if (call.ids().size() > 1) {
                violations.add(new Violation(Kind.TWO_IDS, call.name(), "IDs " + call.ids()));
            }
            checkTime(call, incidents, violations);
            checkEnding(call, call.ending(), effects, byName, violations);
            if (!call.settled().equals(call.ending())) {
                checkEnding(call, call.settled(), effects, byName, violations);
            }
            if (call.settled() instanceof Ending.Unknown unknown) {
                violations.add(new Violation(
                        Kind.STUCK, call.name(), "still unknown after everything was repaired: " + unknown.why()));
            }
        }
        effectsOf.forEach((call, effects) -> {
            if (!known.contains(call)) {
                violations.add(new Violation(Kind.NOBODYS, call, "effects of a call that nobody made: " + effects));
            }
        });
        return violations;
    }

    /**
     * Whether a call's record may be left without an end: a provider was stopped while it had a request of that call, or before it
     * could record what came of the request because the storage was away. Whatever else happened, the record must have ended.
     *
     * @param requests those of the call
     */
    boolean mayBeUncertain(List<Forwarded> requests, List<Incident> incidents) {
        return requests.stream().anyMatch(request -> {
            long end = incidents.stream()
                    .filter(incident ->
                            incident.step().stopsStorage() && incident.overlaps(request.from(), request.to(), 0))
                    .mapToLong(incident -> incident.to() + recovery.toNanos())
                    .reduce(request.to(), Math::max);
            return incidents.stream()
                    .anyMatch(incident ->
                            incident.stops(request.provider()) && incident.overlaps(request.from(), end, 0));
        });
    }

    private void checkTime(Call call, List<Incident> incidents, List<Violation> violations) {
        Duration took = Duration.ofNanos(call.endedAt() - call.begunAt());
        if (took.compareTo(longestCall) > 0) {
            violations.add(new Violation(
                    Kind.STUCK, call.name(), "took " + took.toMillis() + " ms, at most " + longestCall.toMillis()));
        }
        if (call.ending() instanceof Ending.Unknown unknown
                && incidents.stream().noneMatch(incident -> incident.touches(call, recovery.toNanos()))) {
            violations.add(new Violation(Kind.STUCK, call.name(), "unknown without an incident: " + unknown.why()));
        }
    }

    private static void checkEnding(
            Call call, Ending ending, List<Effect> effects, Map<String, Effect> byName, List<Violation> violations) {
        if (ending instanceof Ending.Responded responded) {
            Effect named = byName.get(responded.effect());
            if (named == null) {
                violations.add(new Violation(
                        Kind.LOST,
                        call.name(),
                        "its response has effect " + responded.effect() + ", which is not in the ledger"));
            } else if (!named.call().equals(call.name())) {
                violations.add(
                        new Violation(Kind.WRONG, call.name(), "its response has the effect of " + named.call()));
            }
        } else if (ending instanceof Ending.ResultUnavailable && effects.isEmpty()) {
            violations.add(new Violation(Kind.LOST, call.name(), "told that it took effect, and there is none"));
        } else if (ending instanceof Ending.Rejected rejected) {
            if (!rejected.call().equals(call.name())) {
                violations.add(new Violation(Kind.WRONG, call.name(), "rejected as " + rejected.call()));
            }
            denyEffects(call, "rejected", effects, violations);
        } else if (ending instanceof Ending.Failed failed) {
            denyEffects(call, failed.why(), effects, violations);
        }
    }

    private static void denyEffects(Call call, String told, List<Effect> effects, List<Violation> violations) {
        if (!effects.isEmpty()) {
            violations.add(new Violation(
                    Kind.LOST, call.name(), "told that nothing took effect (" + told + "), but there is " + effects));
        }
    }
}
