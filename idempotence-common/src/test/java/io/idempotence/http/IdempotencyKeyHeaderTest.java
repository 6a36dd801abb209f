package io.idempotence.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class IdempotencyKeyHeaderTest {
    private final IdempotencyKeyHeader standard = IdempotencyKeyHeader.standard();

    static List<HeaderVector> vectors() {
        return HeaderVector.all();
    }

    @Test
    void everyVectorIsThere() {
        assertThat(vectors()).hasSize(49);
    }

    @ParameterizedTest
    @MethodSource("vectors")
    void readsEveryVector(HeaderVector vector) {
        if (vector.accepted()) {
            assertThat(standard.parse(vector.lines())).contains(new IdempotenceId(vector.id()));
        } else {
            assertThatThrownBy(() -> standard.parse(vector.lines())).isInstanceOf(InvalidIdempotencyKeyException.class);
        }
    }

    @ParameterizedTest
    @MethodSource("vectors")
    void readsEveryVectorStrictly(HeaderVector vector) {
        if (vector.acceptedStrict()) {
            assertThat(standard.strict().parse(vector.lines())).contains(new IdempotenceId(vector.id()));
        } else {
            assertThatThrownBy(() -> standard.strict().parse(vector.lines()))
                    .isInstanceOf(InvalidIdempotencyKeyException.class);
        }
    }

    @ParameterizedTest
    @MethodSource("vectors")
    void whatIsWrittenIsReadBack(HeaderVector vector) {
        if (vector.accepted()) {
            IdempotenceId id = new IdempotenceId(vector.id());
            String quoted = standard.format(id, IdempotencyKeyHeader.Style.QUOTED);
            assertThat(standard.strict().parse(List.of(quoted))).contains(id);
        }
    }

    @Test
    void noLineIsNoId() {
        assertThat(standard.parse(List.of())).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                ";a=1",
                ";a=-1.5",
                ";a=\"x;\\\"y\"",
                ";a=tok/en:1",
                ";a=:YQ==:",
                ";a=?1",
                ";a=@1659578233",
                ";a=%\"f%c3%bc\"",
                ";a;b",
                ";  a=1;b=2",
                ";*a.b-c_d=1"
            })
    void parametersAreIgnored(String parameters) {
        assertThat(standard.strict().parse(List.of("\"abc\"" + parameters))).contains(new IdempotenceId("abc"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {" ;a=1", ";a=", ";a=1.", ";a=1.2345", ";1a=1", ";a=?2", ";a=\"x", ";a= 1", ";a=1 ;b=1", ";a=1;"})
    void malformedParametersAreRefused(String parameters) {
        assertThatThrownBy(() -> standard.parse(List.of("\"abc\"" + parameters)))
                .isInstanceOf(InvalidIdempotencyKeyException.class);
    }

    @Test
    void aHugeLineIsRefusedUnread() {
        assertThatThrownBy(() -> standard.parse(List.of("\"abc\"" + ";a".repeat(100_000))))
                .isInstanceOf(InvalidIdempotencyKeyException.class)
                .hasMessageContaining("200005");
    }

    @Test
    void messagesNeverShowTheValue() {
        assertThatThrownBy(() -> standard.parse(List.of("se cret"))).hasMessageNotContaining("cret");
        assertThatThrownBy(() -> standard.parse(List.of("\"sec\tret\""))).hasMessageNotContaining("ret\"");
    }

    @Test
    void spaceIsAcceptedOnRequest() {
        assertThat(standard.acceptSpace().parse(List.of("\"foo bar\""))).contains(new IdempotenceId("foo bar"));
    }

    @Test
    void lengthLimitsAreConfigurable() {
        IdempotencyKeyHeader atLeast16 = standard.length(16, 64);
        assertThat(atLeast16.parse(List.of("k".repeat(16)))).isPresent();
        assertThatThrownBy(() -> atLeast16.parse(List.of("k".repeat(15)))).hasMessageContaining("16 to 64");
        assertThatThrownBy(() -> atLeast16.parse(List.of("k".repeat(65)))).hasMessageContaining("16 to 64");
        assertThatThrownBy(() -> standard.length(0, 10)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> standard.length(10, 256)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void bareStyleRefusesWhatItCannotSpell() {
        assertThat(standard.format(new IdempotenceId("a-1"), IdempotencyKeyHeader.Style.BARE))
                .isEqualTo("a-1");
        assertThatThrownBy(() -> standard.format(new IdempotenceId("a\"b"), IdempotencyKeyHeader.Style.BARE))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("quoted");
        assertThatThrownBy(() -> standard.format(new IdempotenceId("a b"), IdempotencyKeyHeader.Style.QUOTED))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("space");
    }

    @Test
    void codesOfRefusalsAreKnownBothWays() {
        for (Refusal refusal : Refusal.values()) {
            assertThat(Refusal.ofCode(refusal.code())).contains(refusal);
        }
        assertThat(Refusal.ofCode("something-new")).isEmpty();
        assertThat(Collections.list(Collections.enumeration(List.of(Refusal.values()))))
                .filteredOn(Refusal::retryable)
                .containsExactly(Refusal.IN_PROGRESS, Refusal.STORAGE_UNAVAILABLE, Refusal.OVERLOADED);
    }
}
