package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.http.IdempotenceHeaders;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.time.Clock;
import java.time.Duration;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.springframework.context.support.StaticMessageSource;
import org.springframework.mock.web.MockFilterChain;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

class FormTokenFilterTest {
    private final FormTokenFilter filter = new FormTokenFilter(
            new FormTokens(Duration.ofHours(1), Clock.systemUTC()),
            new FormProblems(new StaticMessageSource(), request -> Locale.ROOT, (problem, request, response) -> {}),
            Duration.ofSeconds(10),
            false);

    @Test
    void aFormWhoseIdAFilterInFrontAddsWithGetHeadersAlonePasses() throws Exception {
        MockHttpServletRequest form = new MockHttpServletRequest("POST", "/orders");
        form.setContentType("application/x-www-form-urlencoded");
        form.addHeader("Origin", "https://example.org");
        form.setParameter(FormTokens.PARAMETER, "not a token");
        HttpServletRequest withId = new HttpServletRequestWrapper(form) {
            @Override
            public Enumeration<String> getHeaders(String name) {
                return name.equals(IdempotenceHeaders.IDEMPOTENCY_KEY)
                        ? Collections.enumeration(List.of("8e03978e-40d5-43e8-bc93-6894a57f9324"))
                        : super.getHeaders(name);
            }
        };
        MockFilterChain chain = new MockFilterChain();

        filter.doFilter(withId, new MockHttpServletResponse(), chain);

        assertThat(chain.getRequest()).isSameAs(withId);
    }
}
