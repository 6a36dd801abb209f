package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.mock.web.MockHttpSession;
import org.springframework.session.MapSession;
import org.springframework.session.MapSessionRepository;
import org.springframework.session.web.http.SessionRepositoryFilter;

class FormTokensTest {
    private static final Instant NOON = Instant.parse("2026-11-22T12:00:00Z");

    private final FormTokens tokens = tokensAt(NOON);
    private final MockHttpSession session = new MockHttpSession();

    private static FormTokens tokensAt(Instant now) {
        return new FormTokens(Duration.ofHours(1), Clock.fixed(now, ZoneOffset.UTC));
    }

    private MockHttpServletRequest request(String user) {
        MockHttpServletRequest request = new MockHttpServletRequest();
        request.setSession(session);
        if (user != null) {
            Principal principal = () -> user;
            request.setUserPrincipal(principal);
        }
        return request;
    }

    private String issued(String user) {
        return issuedOn(request(user));
    }

    private String issuedOn(HttpServletRequest page) {
        tokens.offer(page);
        return String.valueOf(page.getAttribute(FormTokens.TOKEN));
    }

    @Test
    void aTokenIsAcceptedInItsSessionForItsUser() {
        MockHttpServletRequest submitted = request("anna");

        FormTokens.Check check = tokens.check(submitted, issued("anna"));

        assertThat(check).isInstanceOf(FormTokens.Check.Accepted.class);
        assertThat(FormTokens.idOf(submitted)).contains(((FormTokens.Check.Accepted) check).id());
    }

    @Test
    void everyTokenIsAnother() {
        Set<String> issued = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            issued.add(issued("anna"));
        }
        assertThat(issued).hasSize(100);
    }

    @Test
    void aPageWithoutFormsCreatesNoSession() {
        MockHttpServletRequest page = new MockHttpServletRequest();
        tokens.offer(page);

        assertThat(page.getSession(false)).isNull();
    }

    @Test
    void aTokenFromBeforeALoginIsForeignAfterIt() {
        assertThat(tokens.check(request("anna"), issued(null))).isInstanceOf(FormTokens.Check.Foreign.class);
        assertThat(tokens.check(request("otto"), issued("anna"))).isInstanceOf(FormTokens.Check.Foreign.class);
        assertThat(tokens.check(request(""), issued(null))).isInstanceOf(FormTokens.Check.Foreign.class);
    }

    @Test
    void aTokenOfAnotherSessionIsForeign() {
        String token = issued("anna");
        MockHttpServletRequest other = request("anna");
        other.setSession(new MockHttpSession());

        assertThat(tokens.check(other, token)).isInstanceOf(FormTokens.Check.Foreign.class);
        assertThat(FormTokens.idOf(other)).isEmpty();
    }

    @Test
    void aTokenWithAnyCharacterChangedIsForeign() {
        String token = issued("anna");
        for (int i = 0; i < token.length(); i++) {
            char other = token.charAt(i) == 'a' ? 'b' : 'a';
            // The last character of a Base64 text has bits that are not used.
            if (i < token.length() - 1) {
                String changed = token.substring(0, i) + other + token.substring(i + 1);
                assertThat(tokens.check(request("anna"), changed))
                        .as(changed)
                        .isInstanceOf(FormTokens.Check.Foreign.class);
            }
        }
        assertThat(tokens.check(request("anna"), "")).isInstanceOf(FormTokens.Check.Foreign.class);
        assertThat(tokens.check(request("anna"), token + "x")).isInstanceOf(FormTokens.Check.Foreign.class);
    }

    @Test
    void aTokenExpires() {
        String token = issued("anna");

        assertThat(tokensAt(NOON.plusSeconds(3_600)).check(request("anna"), token))
                .isInstanceOf(FormTokens.Check.Accepted.class);
        assertThat(tokensAt(NOON.plusSeconds(3_601)).check(request("anna"), token))
                .isInstanceOf(FormTokens.Check.Expired.class);
    }

    /** Spring Session gives each request a copy of the session. Of two that set an attribute at the same time, one is lost. */
    @Test
    void tokensOfTwoFirstPagesOfASessionAreBothAccepted() throws Exception {
        SessionRepositoryFilter<MapSession> sessions =
                new SessionRepositoryFilter<>(new MapSessionRepository(new ConcurrentHashMap<>()));
        MockHttpServletResponse created = new MockHttpServletResponse();
        sessions.doFilter(
                new MockHttpServletRequest(),
                created,
                (request, response) -> ((HttpServletRequest) request).getSession());
        MockHttpServletRequest one = new MockHttpServletRequest();
        MockHttpServletRequest other = new MockHttpServletRequest();
        MockHttpServletRequest submitted = new MockHttpServletRequest();
        for (MockHttpServletRequest request : List.of(one, other, submitted)) {
            request.setCookies(created.getCookies());
        }
        List<String> issued = new ArrayList<>();

        sessions.doFilter(one, new MockHttpServletResponse(), (page, response) -> {
            issued.add(issuedOn((HttpServletRequest) page));
            sessions.doFilter(
                    other,
                    new MockHttpServletResponse(),
                    (otherPage, otherResponse) -> issued.add(issuedOn((HttpServletRequest) otherPage)));
        });

        sessions.doFilter(
                submitted,
                new MockHttpServletResponse(),
                (form, response) -> assertThat(issued)
                        .hasSize(2)
                        .allSatisfy(token -> assertThat(tokens.check((HttpServletRequest) form, token))
                                .isInstanceOf(FormTokens.Check.Accepted.class)));
    }

    @Test
    void aTokenIsAcceptedAfterTheIdOfItsSessionHasChanged() {
        String token = issued("anna");
        session.changeSessionId();

        assertThat(tokens.check(request("anna"), token)).isInstanceOf(FormTokens.Check.Accepted.class);
    }
}
