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
        "/*, /a/b, true",
        "/*, '', true",
        "/payments/*, /payments, true",
        "/payments/*, /payments/7/refunds, true",
        "/payments, /payments, true",
        "/payments, /payments/, true",
        "/payments/, /payments, true",
        "/payments/, /payments/, true",
        "/payments/{id}/, /payments/7, true",
        "/accounts/{id}/charges, /accounts/7/charges/, true",
        "*.do, /a/b.do, true",
        "*.do, /.do, true",
        "'', /, true",
        "/, /, true",
        "/accounts/{id}/charges, /accounts/7/charges, true",
        "/accounts/{id}/*, /accounts/7, true",
        "/accounts/{id}/*, /accounts/7/charges/8, true",
        "/v{number}/x, /v12/x, true",
        "/a.b/(c), /a.b/(c), true",
        "/quoted\\E/*, /quoted\\E/x, true",
        "/payments/*, /paymentsandmore, false",
        "/payments/*, /refunds/payments, false",
        "/payments, /payments/7, false",
        "*.do, /a.do/b, false",
        "*.do, /ado, false",
        "/payments, /payments//, false",
        "/payments/, /payments/7, false",
        "'', /a, false",
        "/, /a, false",
        "/accounts/{id}/charges, /accounts//charges, false",
        "/accounts/{id}/charges, /accounts/7/8/charges, false",
        "/accounts/{id}/charges, /accounts/charges, false",
        "/a.b, /acb, false",
    })
    void covers(String pattern, String path, boolean covered) {
        assertThat(UrlPattern.of(pattern).covers(path)).isEqualTo(covered);
    }

    @ParameterizedTest
    @CsvSource({
        "/payments, /payments /payments/",
        "/payments/, /payments/ /payments",
        "/a.b, /a.b /a.b/",
        "/payments/*, /payments/*",
        "/*, /*",
        "*.do, *.do",
        "/, /",
    })
    void aContainerMapsBothSpellingsOfAnExactPath(String pattern, String mappings) {
        assertThat(UrlPattern.mappings(pattern)).containsExactly(mappings.split(" "));
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
                .withMessageContaining("'" + pattern + "' is not a URL pattern")
                .withMessageContaining("/payments/*");
    }

    @Test
    void aFilterMappingHasNoNames() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> UrlPattern.ofMapping("/accounts/{id}"))
                .withMessageContaining("map the part before it");
    }
}
