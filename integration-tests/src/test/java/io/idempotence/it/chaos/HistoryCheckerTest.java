package io.idempotence.it.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.chaos.ChaosPlan.Step;
import io.idempotence.it.chaos.HistoryChecker.Kind;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The checker finds each kind of fault in a history, and none in a good one. */
class HistoryCheckerTest {
    private static final long SECOND = 1_000_000_000L;
    private static final Incident CRASH = new Incident(Step.KILL_PROVIDER, 0, 10 * SECOND, 12 * SECOND);

    private final HistoryChecker checker = new HistoryChecker(Duration.ofSeconds(10), Duration.ofSeconds(1));

    private static Call call(String name, Ending ending) {
        return call(name, ending, ending);
    }

    private static Call call(String name, Ending ending, Ending settled) {
        return new Call(name, List.of("id-" + name), 11 * SECOND, 13 * SECOND, ending, settled);
    }

    private static Effect effect(String name, String call) {
        return new Effect(name, call);
    }

    private List<Kind> kinds(List<Call> calls, Effect... ledger) {
        return checker.check(calls, List.of(ledger), List.of(CRASH)).stream()
                .map(HistoryChecker.Violation::kind)
                .toList();
    }

    @Test
    void goodHistoryHasNoViolation() {
        assertThat(kinds(
                        List.of(
                                call("a", new Ending.Responded("e1")),
                                call("b", new Ending.Rejected("b")),
                                call("c", new Ending.Failed("storage-unavailable")),
                                call("d", new Ending.Unknown("cut"), new Ending.Responded("e2")),
                                call("e", new Ending.Unknown("killed"), new Ending.ResultUnavailable())),
                        effect("e1", "a"),
                        effect("e2", "d"),
                        effect("e3", "e")))
                .isEmpty();
    }

    @Test
    void twoEffectsOfOneCallAreDouble() {
        assertThat(kinds(List.of(call("a", new Ending.Responded("e1"))), effect("e1", "a"), effect("e2", "a")))
                .containsExactly(Kind.DOUBLE);
    }

    @Test
    void twoEffectsOfACallWhoseOutcomeWasUnknownAreDouble() {
        assertThat(kinds(
                        List.of(call("a", new Ending.Unknown("cut"), new Ending.Responded("e2"))),
                        effect("e1", "a"),
                        effect("e2", "a")))
                .containsExactly(Kind.DOUBLE);
    }

    @Test
    void successWithoutItsEffectIsLost() {
        assertThat(kinds(List.of(call("a", new Ending.Responded("e1"))))).containsExactly(Kind.LOST);
        assertThat(kinds(List.of(call("a", new Ending.Unknown("cut"), new Ending.ResultUnavailable()))))
                .containsExactly(Kind.LOST);
    }

    @Test
    void effectThatItsCallerWasToldDidNotHappenIsLost() {
        assertThat(kinds(List.of(call("a", new Ending.Failed("refused"))), effect("e1", "a")))
                .containsExactly(Kind.LOST);
        assertThat(kinds(List.of(call("a", new Ending.Rejected("a"))), effect("e1", "a")))
                .containsExactly(Kind.LOST);
    }

    @Test
    void responseOfAnotherCallIsWrong() {
        assertThat(kinds(
                        List.of(call("a", new Ending.Responded("e2")), call("b", new Ending.Responded("e2"))),
                        effect("e1", "a"),
                        effect("e2", "b")))
                .containsExactly(Kind.WRONG);
        assertThat(kinds(List.of(call("a", new Ending.Rejected("b"))))).containsExactly(Kind.WRONG);
    }

    @Test
    void callThatEndsAfterItsDeadlineAndSlackIsStuck() {
        Call late = new Call(
                "a", List.of("id"), 0, 11 * SECOND, new Ending.Failed("refused"), new Ending.Failed("refused"));
        assertThat(kinds(List.of(late))).containsExactly(Kind.STUCK);
    }

    @Test
    void unknownOutcomeIsStuckWithoutAnIncidentOrWhereItStays() {
        Ending unknown = new Ending.Unknown("cut");
        Call early = new Call("a", List.of("id"), 0, SECOND, unknown, new Ending.Responded("e1"));
        Call longAfter = new Call("b", List.of("id"), 14 * SECOND, 15 * SECOND, unknown, new Ending.Responded("e2"));
        assertThat(kinds(List.of(early, longAfter), effect("e1", "a"), effect("e2", "b")))
                .containsExactly(Kind.STUCK, Kind.STUCK);
        assertThat(kinds(List.of(call("a", unknown)))).containsExactly(Kind.STUCK);
    }

    private boolean mayBeUncertain(int provider, long from, long to, Incident... incidents) {
        return checker.mayBeUncertain(List.of(new Forwarded("a", provider, from, to)), List.of(incidents));
    }

    @Test
    void recordMayBeUncertainWhereItsProviderWasStopped() {
        assertThat(mayBeUncertain(0, 9 * SECOND, 11 * SECOND, CRASH)).isTrue();
        assertThat(mayBeUncertain(1, 9 * SECOND, 11 * SECOND, CRASH)).isFalse();
        assertThat(mayBeUncertain(0, 8 * SECOND, 9 * SECOND, CRASH)).isFalse();
        assertThat(mayBeUncertain(0, 13 * SECOND, 14 * SECOND, CRASH)).isFalse();
    }

    @Test
    void recordMayBeUncertainAfterAnOutageOfTheStorageOnlyIfItsProviderWasStoppedBeforeItWasWritten() {
        Incident outage = new Incident(Step.KILL_STORAGE, 0, 6 * SECOND, 9 * SECOND);
        Incident earlyOutage = new Incident(Step.KILL_STORAGE, 0, 6 * SECOND, 8 * SECOND);
        assertThat(mayBeUncertain(0, 6 * SECOND, 7 * SECOND, outage)).isFalse();
        assertThat(mayBeUncertain(0, 6 * SECOND, 7 * SECOND, outage, CRASH)).isTrue();
        assertThat(mayBeUncertain(0, 6 * SECOND, 7 * SECOND, earlyOutage, CRASH))
                .isFalse();
    }

    @Test
    void secondIdOfACallAndEffectsOfNobodyAreReported() {
        Ending failed = new Ending.Failed("refused");
        assertThat(kinds(List.of(new Call("a", List.of("id-1", "id-2"), 0, 1, failed, failed))))
                .containsExactly(Kind.TWO_IDS);
        assertThat(kinds(List.of(), effect("e1", "x"))).containsExactly(Kind.NOBODYS);
    }
}
