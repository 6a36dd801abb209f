package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class UrlPatternTest {
    @ParameterizedTest
    @CsvSource({
        "/*, /a/b",
        "/*, ''",
        "/payments/*, /payments",
        "/payments/*, /payments/7/refunds",
        "/payments, /payments",
        "/payments, /payments/",
        "/accounts/{id}/charges, /accounts/7/charges/",
        "*.do, /a/b.do",
        "*.do, /.do",
        "'', /",
        "/, /",
        "/accounts/{id}/charges, /accounts/7/charges",
        "/accounts/{id}/*, /accounts/7",
        "/accounts/{id}/*, /accounts/7/charges/8",
        "/v{number}/x, /v12/x",
        "/a.b/(c), /a.b/(c)",
        "/quoted\\E/*, /quoted\\E/x",
    })
    void covers(String pattern, String path) {
        assertThat(UrlPattern.of(pattern).covers(path)).isTrue();
    }

    @ParameterizedTest
    @CsvSource({
        "/payments/*, /paymentsandmore",
        "/payments/*, /refunds/payments",
        "/payments, /payments/7",
        "*.do, /a.do/b",
        "*.do, /ado",
        "/payments, /payments//",
        "'', /a",
        "/, /a",
        "/accounts/{id}/charges, /accounts//charges",
        "/accounts/{id}/charges, /accounts/7/8/charges",
        "/accounts/{id}/charges, /accounts/charges",
        "/a.b, /acb",
    })
    void doesNotCover(String pattern, String path) {
        assertThat(UrlPattern.of(pattern).covers(path)).isFalse();
    }

    /** A line break comes decoded out of a path. */
    @Test
    void aLineBreakIsACharacterAsAnyOther() {
        assertThat(UrlPattern.of("/payments/*").covers("/payments/a\nb")).isTrue();
        assertThat(UrlPattern.of("*.do").covers("/a\nb.do")).isTrue();
        assertThat(UrlPattern.of("/payments/{id}").covers("/payments/a\nb")).isTrue();
        assertThat(UrlPattern.of("/payments").covers("/payments\n")).isFalse();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "payments",
                "payments/*",
                "/a*",
                "/*/a",
                "/a/**",
                "*",
                "*.d*",
                "/{",
                "/a}",
                "/{}",
                "/{a b}",
                "/{{a}}"
            })
    void aPatternThatIsNoneIsRefused(String pattern) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> UrlPattern.of(pattern))
                .withMessageContaining("'" + pattern + "' is no URL pattern")
                .withMessageContaining("/payments/*");
    }

    @Test
    void aFilterMappingHasNoNames() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> UrlPattern.ofMapping("/accounts/{id}"))
                .withMessageContaining("map the part before it");
    }
}
