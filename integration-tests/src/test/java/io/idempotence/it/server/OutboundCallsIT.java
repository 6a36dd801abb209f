package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Feign;
import feign.RequestLine;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestScope;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Both halves in one process: a handler that runs again repeats the IDs of the calls it makes, so these are not executed again. */
class OutboundCallsIT extends FilterTestBase {
    /** What the service behind got, and what it did. */
    private final List<String> asked = new CopyOnWriteArrayList<>();

    private final List<String> reserved = new CopyOnWriteArrayList<>();
    private Stock stock;

    interface Stock {
        @RequestLine("POST /reserve")
        String reserve(String what);
    }

    @BeforeEach
    void startTheServiceBehind() {
        Idempotence behind = idempotence();
        ServletServer server = container.start(
                context -> {
                    context.addFilter("log", (request, response, chain) -> {
                                asked.add(((HttpServletRequest) request).getHeader("Idempotency-Key"));
                                chain.doFilter(request, response);
                            })
                            .addMappingForUrlPatterns(null, false, "/*");
                    IdempotenceFilter.builder(behind).build().install(context);
                    context.addServlet("stock", ServletServer.servlet((request, response) -> {
                                String what = FilterTestBase.text(request);
                                reserved.add(what);
                                respond(response, 201, "reserved " + what + " as " + reserved.size());
                            }))
                            .addMapping("/*");
                },
                null);
        toClose.add(server);
        IdempotenceClientConfig patient = IdempotenceClientConfig.builder()
                .deadline(Duration.ofMinutes(2))
                .build();
        stock = IdempotentFeign.install(Feign.builder(), patient)
                .target(Stock.class, server.uri("").toString());
    }

    private void assertReservedOnceEach(String... what) {
        assertThat(reserved).containsExactly(what);
        assertThat(asked).hasSize(2 * what.length).noneMatch(line -> line.contains(id));
        assertThat(asked.subList(what.length, asked.size())).isEqualTo(asked.subList(0, what.length));
    }

    @Test
    void handlerThatRunsAgainAfterAFailureReservesOnce() {
        ServletServer server = serve((request, response) -> {
            int run = runs.get();
            String receipt = stock.reserve("a") + ", " + stock.reserve("b") + ", " + stock.reserve("a");
            respond(response, run == 1 ? 503 : 201, receipt);
        });
        assertThat(call(server).statusCode()).isEqualTo(503);
        assertThat(text(call(server))).isEqualTo("reserved a as 1, reserved b as 2, reserved a as 3");
        assertThat(runs).hasValue(2);
        assertReservedOnceEach("a", "b", "a");
    }

    @Test
    void handlerThatGoesOnInAThreadOfTheContainerReservesOnce() {
        ServletServer server = serve((request, response) -> {
            int run = runs.get();
            AsyncContext async = request.startAsync();
            async.start(() -> {
                respond(async, run == 1 ? 503 : 201, stock.reserve("a"));
                async.complete();
            });
        });
        assertThat(call(server).statusCode()).isEqualTo(503);
        assertThat(text(awaitEnd(server))).isEqualTo("reserved a as 1");
        assertReservedOnceEach("a");
    }

    @Test
    void workCarriedToTheHandlersOwnExecutorReservesOnce() {
        ServletServer server = serve((request, response) -> {
            int run = runs.get();
            String receipt = CompletableFuture.supplyAsync(
                            () -> stock.reserve("a"), IdempotenceScope.carrying(executor))
                    .join();
            respond(response, run == 1 ? 503 : 201, receipt);
        });
        assertThat(call(server).statusCode()).isEqualTo(503);
        assertThat(text(call(server))).isEqualTo("reserved a as 1");
        assertReservedOnceEach("a");
    }

    @Test
    void messageThatIsDeliveredAgainReservesOnce() throws Exception {
        Idempotence consumer = idempotence();
        IdempotenceId message = IdempotenceId.of(id);
        assertThatThrownBy(() -> consumer.execute(message, () -> {
                    stock.reserve("a");
                    throw new IllegalStateException("broken after the call");
                }))
                .hasMessage("broken after the call");
        consumer.execute(message, () -> stock.reserve("a"));
        assertReservedOnceEach("a");
    }

    /** Two tenants may choose the same ID; what they cause behind must not meet. */
    @Test
    void tenantsWithTheSameIdHaveTheirOwnReservations() {
        ServletServer server = serve(
                (request, response) -> respond(response, 201, stock.reserve("a")),
                filter -> filter.scope(RequestScope.header("X-Tenant")));
        for (String tenant : List.of("one", "two")) {
            post(server.uri("/payments"), id, "{}", "X-Tenant", tenant);
        }
        assertThat(reserved).containsExactly("a", "a");
        assertThat(asked).doesNotHaveDuplicates();
    }
}
