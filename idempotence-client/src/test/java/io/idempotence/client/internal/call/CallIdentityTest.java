package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Promise P1: a call sends one ID, its own. */
class CallIdentityTest {
    private static final String OWN = "\"order-1\"";

    private final CallIdentity identity = TestCalls.undecided(TestCalls.operation(null));

    static Stream<List<String>> changedLines() {
        return Stream.of(List.of(), List.of("\"order-2\""), List.of(OWN, OWN), List.of("order-1"));
    }

    private void decide(String httpMethod, List<String> lines) {
        identity.decide(httpMethod, lines, "create", () -> "/orders", () -> null);
    }

    @ParameterizedTest
    @MethodSource("changedLines")
    void headerThatOtherCodeChangedIsRefused(List<String> lines) {
        decide("POST", List.of(OWN));
        assertThatIllegalStateException()
                .isThrownBy(() -> identity.requireUnchanged(lines))
                .withMessageContaining("changed the Idempotency-Key of this call");
    }

    @Test
    void headerWithTheIdOfTheCallIsAccepted() {
        decide("POST", List.of(OWN));
        assertThatCode(() -> identity.requireUnchanged(List.of(OWN))).doesNotThrowAnyException();
    }

    @Test
    void annotationDecidesBeforeTheHttpMethodAndTheCallersOwnId() {
        assertThat(CallIdentity.carriesId(TestCalls.operation(true), "PUT", false))
                .isTrue();
        assertThat(CallIdentity.carriesId(TestCalls.operation(false), "POST", true))
                .isFalse();
        assertThat(CallIdentity.carriesId(TestCalls.operation(true), "GET", true))
                .isFalse();
    }

    @Test
    void callersOwnIdDecidesBeforeTheHttpMethod() {
        assertThat(CallIdentity.carriesId(TestCalls.operation(null), "PUT", false))
                .isFalse();
        assertThat(CallIdentity.carriesId(TestCalls.operation(null), "PUT", true))
                .isTrue();
    }

    @Test
    void callWhoseHttpMethodNeedsNoIdWillCarryTheOneThatItsCallerGave() {
        assertThat(identity.willCarryId("PUT")).isFalse();
        decide("PUT", List.of(OWN));
        assertThat(identity.willCarryId("PUT")).isTrue();
    }

    @ParameterizedTest
    @CsvSource({"POST, true", "GET, false"})
    void callThatCouldNotBeMadeKeepsTheDoubtOfItsScopeOnlyIfItCarriesAnId(String httpMethod, boolean keeps) {
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            CallIdentity first = TestCalls.undecided(TestCalls.operation(null));
            first.decide("POST", List.of(), "create", () -> "/orders", () -> null);
            first.history().sent();
            first.history().ended(true);
            CallIdentity later = TestCalls.undecided(TestCalls.operation(null));
            later.keepDoubt(httpMethod, false, List.of());
            assertThat(later.history().isInDoubt()).isEqualTo(keeps);
            return null;
        });
    }

    @Test
    void callWithoutAnIdMayHaveAnyHeader() {
        decide("GET", List.of());
        assertThatCode(() -> identity.requireUnchanged(List.of(OWN))).doesNotThrowAnyException();
    }
}
