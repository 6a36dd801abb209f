package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceException;
import jakarta.servlet.http.HttpServletRequest;
import java.lang.reflect.Proxy;
import java.security.Principal;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The texts of scopes, which operators give to find a record ({@code docs/operations.md}). */
class RequestScopeTest {
    private static final RequestScope TENANT = RequestScope.header("X-Tenant");

    @Test
    void principalAndHeaderHaveTheirKindInFront() {
        assertThat(RequestScope.principal().apply(request("acme", "ann"))).isEqualTo("principal:ann");
        assertThat(TENANT.apply(request("acme", "ann"))).isEqualTo("header:acme");
    }

    @Test
    void combinedScopesBeginWithTheLengthOfTheFirst() {
        RequestScope both = TENANT.and(RequestScope.principal());
        assertThat(both.apply(request("acme", "ann"))).isEqualTo("11:header:acmeprincipal:ann");
        assertThat(both.apply(request("acme", null))).isEqualTo("11:header:acme");
        assertThat(both.apply(request(null, "ann"))).isEqualTo("0:principal:ann");
        assertThat(both.apply(request(null, null))).isEmpty();
    }

    /** No request has such a header, and all tenants would share their IDs. */
    @ParameterizedTest
    @ValueSource(strings = {"", " ", "X-Tenant X-Region", "X-Tenant,X-Region", "X-Tenant:", " X-Tenant", "X-Ténant"})
    void headerWhoseNameIsNoneIsRefused(String name) {
        assertThatThrownBy(() -> RequestScope.header(name))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("the name of a header, such as X-Tenant");
    }

    /** Equal ones, too: a rule without an exception is easier to rely on. */
    @Test
    void headerOnSeveralLinesGivesNoScope() {
        for (RequestScope scope : List.of(TENANT, RequestScope.principal().and(TENANT))) {
            assertThatThrownBy(() -> scope.apply(requestOf(List.of("acme", "acme"), "ann")))
                    .isInstanceOf(IdempotenceException.class)
                    .hasMessageContaining("X-Tenant occurs on 2 lines")
                    .hasMessageNotContaining("acme");
        }
    }

    private static HttpServletRequest request(@Nullable String tenant, @Nullable String user) {
        return requestOf(tenant == null ? List.of() : List.of(tenant), user);
    }

    private static HttpServletRequest requestOf(List<String> tenants, @Nullable String user) {
        Principal principal = user == null ? null : () -> user;
        return (HttpServletRequest) Proxy.newProxyInstance(
                RequestScopeTest.class.getClassLoader(),
                new Class<?>[] {HttpServletRequest.class},
                (self, method, arguments) -> switch (method.getName()) {
                    case "getHeader" -> tenants.isEmpty() ? null : tenants.get(0);
                    case "getHeaders" -> Collections.enumeration(tenants);
                    default -> principal;
                });
    }
}
