package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.send;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.idempotence.FailureRule;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.servlet.RequestScope;
import io.idempotence.server.servlet.RequestSettings;
import io.idempotence.server.storage.IdempotenceStorage;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** One application, several operations, each with its rules. */
class OperationsIT extends FilterTestBase {
    private static final IdempotencePolicy STORES_ALL = IdempotencePolicy.builder()
            .failureRule(FailureRule.STORE_EVERYTHING)
            .build();

    private boolean isReplayed(ServletServer server, String path) {
        post(server.uri(path), id + path, "{}");
        return replayed(post(server.uri(path), id + path, "{}"));
    }

    @Test
    void eachOperationHasItsPolicy() {
        ServletServer server = serve(
                (request, response) -> respond(response, 500, "broken"),
                filter -> filter.operation("POST /accounts/{id}/charges", STORES_ALL)
                        .operation("put /points/*", STORES_ALL)
                        .operation("*.do", STORES_ALL));
        assertThat(isReplayed(server, "/accounts/7/charges")).isTrue();
        assertThat(isReplayed(server, "/accounts/7/charges/8")).isFalse();
        assertThat(isReplayed(server, "/points/7")).as("another method").isFalse();
        assertThat(isReplayed(server, "/a/b.do")).isTrue();
        assertThat(isReplayed(server, "/others")).as("as the service does").isFalse();
    }

    @Test
    void ofSeveralPoliciesTheFirstCounts() {
        ServletServer server = serve(
                (request, response) -> respond(response, 500, "broken"),
                filter -> filter.policy(STORES_ALL)
                        .operation("/points/7", STORES_ALL)
                        .operation("/points/*", IdempotencePolicy.defaults()));
        assertThat(isReplayed(server, "/points/7")).isTrue();
        assertThat(isReplayed(server, "/points/8")).isFalse();
        assertThat(isReplayed(server, "/others")).isTrue();
    }

    @Test
    void anOperationThatIsNoneIsRefusedEarly() {
        IdempotenceFilterBuilder filter = IdempotenceFilter.builder(idempotence());
        for (String operation :
                new String[] {"payments", "POST payments", "GET /payments", "POST  /payments", "/a/*/b"}) {
            assertThatIllegalArgumentException().isThrownBy(() -> filter.operation(operation, STORES_ALL));
        }
    }

    /** The settings of one request, chosen by an integration that knows its handler. */
    private static RequestSettings chosen(HttpServletRequest request, RequestSettings asConfigured) {
        return switch (request.getRequestURI()) {
            case "/keeps" -> new RequestSettings(true, true, STORES_ALL, asConfigured.maxWait());
            case "/optional" -> new RequestSettings(true, false, asConfigured.policy(), asConfigured.maxWait());
            case "/open" -> new RequestSettings(false, true, asConfigured.policy(), asConfigured.maxWait());
            default -> asConfigured;
        };
    }

    /** A server whose application chooses the settings of each request. */
    private ServletServer serveChosen(
            ServletServer.Handler handler,
            BiFunction<HttpServletRequest, RequestSettings, RequestSettings> choice,
            UnaryOperator<IdempotenceFilterBuilder> options) {
        Idempotence idempotence = idempotence();
        return start(handler, context -> {
            RequestSettings.choose(context, choice);
            options.apply(IdempotenceFilter.builder(idempotence)).build().install(context);
        });
    }

    @Test
    void theSettingsOfARequestReplaceThoseOfTheFilter() {
        ServletServer server = serveChosen(
                (request, response) -> respond(response, 500, "broken"), OperationsIT::chosen, filter -> filter);
        assertThat(isReplayed(server, "/keeps")).isTrue();
        assertThat(isReplayed(server, "/others")).isFalse();
        assertThat(text(post(server.uri("/optional"), null, "{}"))).isEqualTo("broken");
        assertThat(refusal(post(server.uri("/others"), null, "{}"))).isEqualTo("key-missing");
        assertThat(text(post(server.uri("/open"), "not a header", "{}")))
                .as("untouched, whatever its header is")
                .isEqualTo("broken");
    }

    @Test
    @DisplayName("P6: the settings of a request may require an ID for any unsafe method")
    void theSettingsOfARequestMayRequireAnIdForAnyUnsafeMethod() {
        List<String> asked = new CopyOnWriteArrayList<>();
        ServletServer server = serveChosen(
                (request, response) -> respond(response, 200, "put"),
                (request, asConfigured) -> {
                    asked.add(request.getMethod() + " " + asConfigured.isProtected());
                    return chosen(request, asConfigured);
                },
                filter -> filter.methods("POST"));
        assertThat(refusal(send(request("PUT", server.uri("/keeps"), null, "{}"))))
                .isEqualTo("key-missing");
        assertThat(text(send(request("PUT", server.uri("/others"), null, "{}"))))
                .isEqualTo("put");
        assertThat(text(send(request("GET", server.uri("/keeps"), id, "")))).isEqualTo("put");
        assertThat(asked).as("once for each unsafe request").containsExactly("PUT false", "PUT false");
    }

    @Test
    @DisplayName("P6: a request whose settings cannot be chosen does not run")
    void aRequestWhoseSettingsCannotBeChosenDoesNotRun() {
        ServletServer server = serveChosen(
                (request, response) -> respond(response, 200, "ran"),
                (request, asConfigured) -> {
                    throw new IllegalStateException("no such operation");
                },
                filter -> filter);
        assertThat(post(server.uri("/a"), id, "{}").statusCode()).isEqualTo(500);
        assertThat(runs).hasValue(0);
    }

    /** Two filters of one application, on one storage. */
    private ServletServer serveTwo(ServletServer.Handler handler, String first, String second) {
        Idempotence idempotence = idempotence();
        return start(handler, context -> {
            IdempotenceFilter.builder(idempotence)
                    .policy(STORES_ALL)
                    .scope(RequestScope.header("X-Tenant"))
                    .build()
                    .install(context, first);
            IdempotenceFilter.builder(idempotence)
                    .idOptional()
                    .maxRequestBody(10)
                    .build()
                    .install(context, second);
        });
    }

    @Test
    void severalFiltersProtectEachItsOwn() {
        ServletServer server = serveTwo((request, response) -> respond(response, 500, "broken"), "/a/*", "/b/*");
        assertThat(isReplayed(server, "/a/1")).isTrue();
        assertThat(isReplayed(server, "/b/1")).isFalse();
        assertThat(isReplayed(server, "/c/1")).as("protected by none").isFalse();
        assertThat(post(server.uri("/b/1"), null, "{}").statusCode()).isEqualTo(500);
        // Last, because a container may close the connection of a body that nobody has read.
        assertThat(refusal(post(server.uri("/a/1"), null, "{}"))).isEqualTo("key-missing");
    }

    @Test
    void eachFilterLeavesTheDispatchesOfTheOthersAlone() {
        errorPage = "/error";
        AtomicInteger pages = new AtomicInteger();
        ServletServer server = serveTwo(
                (request, response) -> {
                    switch (request.getDispatcherType()) {
                        case REQUEST -> {
                            AsyncContext async = request.startAsync();
                            executor.execute(async::dispatch);
                        }
                        case ASYNC -> response.sendError(409, "no money");
                        default -> response.getWriter().print("page " + pages.incrementAndGet());
                    }
                },
                "/a/*",
                "/b/*");
        for (String path : new String[] {"/a/1", "/b/1"}) {
            HttpResponse<byte[]> first = post(server.uri(path), id + path, "{}");
            assertThat(first.statusCode()).isEqualTo(409);
            assertThat(text(first)).startsWith("page ");
            HttpResponse<byte[]> second = post(server.uri(path), id + path, "{}");
            assertSameResponse(first, second);
        }
        assertThat(runs).hasValue(2);
    }

    @Test
    void whatCompletesInADispatchIsCompletedOnce() {
        ServletServer server = serveTwo(
                (request, response) -> {
                    AsyncContext async = request.startAsync();
                    if (request.getDispatcherType() == DispatcherType.REQUEST) {
                        async.dispatch();
                    } else {
                        respond(async, 200, "done");
                        async.complete();
                    }
                },
                "/a/*",
                "/b/*");
        for (String path : new String[] {"/a/1", "/b/1"}) {
            HttpResponse<byte[]> first = post(server.uri(path), id + path, "{}");
            assertThat(text(first)).isEqualTo("done");
            assertSameResponse(first, post(server.uri(path), id + path, "{}"));
        }
    }

    @Test
    void whereTwoFiltersCoverARequestTheFirstProtectsIt() {
        ServletServer server = serveTwo((request, response) -> respond(response, 500, "broken"), "/a/*", "/*");
        assertThat(isReplayed(server, "/a/1")).isTrue();
        assertThat(isReplayed(server, "/b/1")).isFalse();
        assertThat(post(server.uri("/a/2"), id, "12345678901").statusCode())
                .as("not the second one's cap")
                .isEqualTo(500);
    }

    /** A container maps an exact pattern exactly, and there are frameworks to which a last slash makes no difference. */
    @Test
    @DisplayName("P6: an exact pattern protects its path with and without a last slash")
    void anExactPatternProtectsItsPathWithAndWithoutALastSlash() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> respond(response, 200, "paid"),
                context ->
                        IdempotenceFilter.install(context, idempotence, "/payments", "/refunds/", "/points/*", "*.do"));
        for (String path : List.of(
                "/payments", "/payments/", "/refunds", "/refunds/", "/points", "/points/", "/points/7/", "/a.do")) {
            assertThat(isReplayed(server, path)).as(path).isTrue();
        }
        for (String path : List.of("/payments/7", "/refunds/7", "/pointsandmore", "/a.do/")) {
            assertThat(isReplayed(server, path)).as(path).isFalse();
        }
    }

    @Test
    void theFirstFilterThatCoversARequestMayLetItThrough() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.REQUEST
                            && request.getRequestURI().endsWith("/async")) {
                        request.startAsync().dispatch("/view");
                    } else {
                        respond(response, 500, "broken");
                    }
                },
                context -> {
                    IdempotenceFilter.builder(idempotence).idOptional().build().install(context, "/legacy/*");
                    IdempotenceFilter.builder(idempotence)
                            .methods("DELETE")
                            .build()
                            .install(context, "/deleting/*");
                    IdempotenceFilter.builder(idempotence)
                            .policy(STORES_ALL)
                            .build()
                            .install(context);
                });
        for (String path : List.of("/legacy/1", "/legacy/async", "/deleting/1", "/deleting/async")) {
            assertThat(text(post(server.uri(path), null, "{}"))).as(path).isEqualTo("broken");
            assertThat(isReplayed(server, path)).as(path).isFalse();
        }
        assertThat(isReplayed(server, "/others")).isTrue();
        assertThat(refusal(post(server.uri("/others"), null, "{}"))).isEqualTo("key-missing");
    }

    @Test
    void whatAHandlerThatIsNotProtectedDispatchesIntoAPatternIsNotRefused() {
        Idempotence idempotence = idempotence();
        AtomicInteger views = new AtomicInteger();
        ServletServer server = start(
                (request, response) -> {
                    if (views.get() == 2 || request.getRequestURI().equals("/payments/7")) {
                        respond(response, 200, "viewed");
                    } else {
                        views.incrementAndGet();
                        request.startAsync().dispatch("/payments/view");
                    }
                },
                context -> IdempotenceFilter.install(context, idempotence, "/payments/*"));
        HttpResponse<byte[]> search = post(server.uri("/search"), null, "{}");
        assertThat(search.statusCode()).isEqualTo(200);
        assertThat(text(search)).isEqualTo("viewed");
        assertThat(views).as("the second dispatch, too").hasValue(2);
        assertThat(refusal(post(server.uri("/payments/7"), null, "{}"))).isEqualTo("key-missing");
    }

    @Test
    @DisplayName("P6: a request that a filter in front dispatches to elsewhere is protected by its own path")
    void aRequestThatAFilterInFrontDispatchesElsewhereIsProtectedByItsOwnPath() {
        Idempotence idempotence = idempotence();
        AtomicInteger ran = new AtomicInteger();
        ServletServer server = start(
                (request, response) -> {
                    ran.incrementAndGet();
                    respond(response, 200, "paid");
                },
                context -> {
                    inFront(
                            context,
                            (request, response, chain) -> request.startAsync().dispatch("/v2"));
                    IdempotenceFilter.install(context, idempotence, "/payments/*");
                });
        assertThat(isReplayed(server, "/payments/1")).isTrue();
        assertThat(ran).hasValue(1);
    }

    /** A server in which a filter in front dispatches all requests to one path, unless they say that they go straight on. */
    private ServletServer serveDispatchedElsewhere(UnaryOperator<IdempotenceFilterBuilder> options) {
        Idempotence idempotence = idempotence();
        return start((request, response) -> respond(response, 500, "broken"), context -> {
            inFront(context, (request, response, chain) -> {
                if (((HttpServletRequest) request).getHeader("X-Straight-On") == null) {
                    request.startAsync().dispatch("/v2?routed=yes");
                } else {
                    chain.doFilter(request, response);
                }
            });
            options.apply(IdempotenceFilter.builder(idempotence)).build().install(context, "/payments/*");
        });
    }

    @Test
    @DisplayName("P5: of a request that a filter in front dispatches elsewhere its own path and query are compared")
    void ofARequestThatAFilterInFrontDispatchesElsewhereItsOwnPathAndQueryAreCompared() {
        ServletServer server = serveDispatchedElsewhere(filter -> filter.policy(STORES_ALL));
        String path = "/payments/a%20b?to=7&at=8";
        post(server.uri(path), id, "{}");
        for (String other : List.of("/payments/b?to=7&at=8", "/payments/a%20b?to=9&at=8", "/payments/a%20b")) {
            assertThat(refusal(post(server.uri(other), id, "{}"))).as(other).isEqualTo("key-reused");
        }
        assertThat(replayed(post(server.uri(path), id, "{}"))).isTrue();
        String without = "/payments/c";
        post(server.uri(without), id + "c", "{}");
        assertThat(refusal(post(server.uri(without + "?routed=yes"), id + "c", "{}")))
                .isEqualTo("key-reused");
        assertThat(replayed(post(server.uri(without), id + "c", "{}"))).isTrue();
    }

    @Test
    void aRequestIsTheSameWhetherAFilterInFrontDispatchesItOrNot() {
        ServletServer server = serveDispatchedElsewhere(filter -> filter.policy(STORES_ALL));
        for (String path : List.of("/payments/a%20b;c=d?to=7&at=8", "/payments", "/payments/1?")) {
            post(server.uri(path), id + path.length(), "{}");
            assertThat(replayed(post(server.uri(path), id + path.length(), "{}", "X-Straight-On", "yes")))
                    .as(path)
                    .isTrue();
        }
    }

    @Test
    void theOperationOfARequestThatAFilterInFrontDispatchesElsewhereIsThatOfItsOwnPath() {
        ServletServer server =
                serveDispatchedElsewhere(filter -> filter.operation("POST /payments/refunds/*", STORES_ALL)
                        .operation("/v2", IdempotencePolicy.defaults()));
        assertThat(isReplayed(server, "/payments/refunds/1")).isTrue();
        assertThat(isReplayed(server, "/payments/1")).isFalse();
    }

    @Test
    void aFilterIsInstalledOnceAndWhereAContainerCanMapIt() {
        Idempotence idempotence = idempotence(IdempotenceStorage.inMemory());
        start((request, response) -> respond(response, 200, "ok"), context -> {
            IdempotenceFilter filter = IdempotenceFilter.builder(idempotence).build();
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> filter.install(context, "/accounts/{id}/charges"))
                    .withMessageContaining("map the part before it");
            filter.install(context, "/a/*");
            assertThatIllegalStateException()
                    .isThrownBy(() -> filter.install(context, "/b/*"))
                    .withMessageContaining("installed already");
        });
    }
}
