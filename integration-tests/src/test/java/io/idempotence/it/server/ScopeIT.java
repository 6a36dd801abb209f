package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestScope;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.net.http.HttpResponse;
import java.security.Principal;
import java.util.EnumSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Records of different owners do not meet, nor do those of nested calls. */
class ScopeIT extends FilterTestBase {
    @Test
    void anotherPrincipalsRecordIsNeverSeen() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) ->
                        respond(response, 200, request.getUserPrincipal().getName()),
                context -> {
                    FilterRegistration.Dynamic login = context.addFilter("login", (request, response, chain) -> {
                        HttpServletRequest http = (HttpServletRequest) request;
                        String user = http.getHeader("X-User");
                        if (user == null) {
                            ((HttpServletResponse) response).setStatus(401);
                            return;
                        }
                        chain.doFilter(
                                new HttpServletRequestWrapper(http) {
                                    @Override
                                    public Principal getUserPrincipal() {
                                        return () -> user;
                                    }
                                },
                                response);
                    });
                    login.setAsyncSupported(true);
                    login.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
                    IdempotenceFilter.install(context, idempotence);
                });
        assertThat(text(post(server.uri("/p"), id, "", "X-User", "alice"))).isEqualTo("alice");
        HttpResponse<byte[]> bob = post(server.uri("/p"), id, "", "X-User", "bob");
        assertThat(replayed(bob)).isFalse();
        assertThat(text(bob)).isEqualTo("bob");
        assertThat(post(server.uri("/p"), id, "").statusCode()).isEqualTo(401);
        assertThat(replayed(post(server.uri("/p"), id, "", "X-User", "alice"))).isTrue();
        assertThat(runs).hasValue(2);
    }

    @Test
    void aNestedCallKeepsItsResultApartFromItsParents() {
        AtomicInteger port = new AtomicInteger();
        ServletServer server = serve((request, response) -> {
            if (request.getRequestURI().equals("/parent")) {
                HttpResponse<byte[]> child =
                        post(java.net.URI.create("http://127.0.0.1:" + port.get() + "/child"), "child-" + id, "");
                respond(response, 200, "parent of " + text(child));
            } else {
                respond(response, 200, "child");
            }
        });
        port.set(server.port());
        assertThat(text(post(server.uri("/parent"), id, ""))).isEqualTo("parent of child");
        assertThat(text(post(server.uri("/parent"), id, ""))).isEqualTo("parent of child");
        assertThat(text(post(server.uri("/child"), "child-" + id, ""))).isEqualTo("child");
        assertThat(runs).hasValue(2);
    }

    /** P5 */
    @Test
    void tenantsDoNotMeet() {
        ServletServer server = serve(
                (request, response) -> respond(response, 200, "of " + request.getHeader("X-Tenant")),
                filter -> filter.scope(RequestScope.header("X-Tenant").and(RequestScope.principal())));
        HttpResponse<byte[]> one = post(server.uri("/pay"), id, "{}", "X-Tenant", "one");
        HttpResponse<byte[]> two = post(server.uri("/pay"), id, "{}", "X-Tenant", "two");
        assertThat(text(one)).isEqualTo("of one");
        assertThat(text(two)).isEqualTo("of two");
        assertThat(runs).hasValue(2);
        assertSameResponse(one, post(server.uri("/pay"), id, "{}", "X-Tenant", "one"));
    }

    /** Promise P5: a gateway that adds its own line leaves the caller's, which comes first. */
    @ParameterizedTest
    @ValueSource(strings = {"attacker", "victim"})
    void aTenantOnTwoLinesIsNeverChosen(String ofGateway) {
        ServletServer server = serve(
                (request, response) -> respond(response, 200, "of " + request.getHeader("X-Tenant")),
                filter -> filter.scope(RequestScope.principal().and(RequestScope.header("X-Tenant"))));
        post(server.uri("/pay"), id, "{}", "X-Tenant", "victim");
        HttpResponse<byte[]> refused;
        try (CapturedLog log = CapturedLog.of(IdempotenceFilter.class)) {
            refused = post(server.uri("/pay"), id, "{}", "X-Tenant", "victim", "x-tenant", ofGateway);
            post(server.uri("/pay"), id, "{}", "X-Tenant", "victim", "x-tenant", ofGateway);
            assertThat(log.warnings()).singleElement().asString().contains("X-Tenant occurs on 2 lines");
        }
        assertThat(refused.statusCode()).isEqualTo(400);
        assertThat(refusal(refused)).isEqualTo("key-invalid");
        assertThat(text(refused))
                .contains("X-Tenant occurs on 2 lines", "gateway")
                .doesNotContain("victim", "attacker");
        assertThat(runs).hasValue(1);
        // It left no record.
        assertThat(replayed(post(server.uri("/pay"), id, "{}", "X-Tenant", "attacker")))
                .isFalse();
        assertThat(runs).hasValue(2);
    }
}
