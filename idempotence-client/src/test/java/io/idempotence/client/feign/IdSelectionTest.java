package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.FeignException;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Reply;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;

/** Tests of which ID a call carries: its caller's header, its scope's, one derived from the inbound request, or a new one. */
class IdSelectionTest extends FeignTestBase {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");

    private static void within(InboundRequest request, Runnable work) {
        Runnable leave = request.enter();
        try {
            work.run();
        } finally {
            leave.run();
        }
    }

    private List<String> newIds() {
        List<String> ids = List.copyOf(server.ids());
        server.requests().clear();
        return ids;
    }

    // ---- within an inbound request

    @Test
    void requestThatIsExecutedAgainRepeatsTheIdsOfItsCallsAndNeverForwardsItsOwn() {
        Orders orders = orders();
        Runnable handler = () -> {
            orders.create("a");
            orders.create("b");
            orders.create("a");
            orders.tick();
        };
        within(InboundRequest.of("inbound-1"), handler);
        List<String> first = newIds();
        within(InboundRequest.of("inbound-1"), handler);
        assertThat(newIds()).isEqualTo(first);
        within(InboundRequest.of("inbound-2"), handler);
        assertThat(newIds()).doesNotContainAnyElementsOf(first);
        assertThat(first).doesNotHaveDuplicates().noneMatch(id -> id.contains("inbound"));
    }

    @Test
    void derivedIdStaysOnEveryAttempt() {
        server.respond(Reply.status(503), Reply.status(503));
        within(InboundRequest.of("inbound"), () -> orders().create("a"));
        assertThat(server.ids()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
    }

    @Test
    void callersHeaderAndScopeComeBeforeTheInboundRequest() {
        within(InboundRequest.of("inbound"), () -> {
            orders().createAs("mine");
            IdempotenceScope.with(JOB, () -> orders().create("a"));
        });
        assertThat(newIds()).containsExactly("mine", "\"job-1\"");
    }

    @Test
    void callsWithoutAnIdStayWithoutOne() {
        within(InboundRequest.of("inbound"), () -> {
            orders().list();
            orders().put("x");
            orders().unprotected("x");
        });
        assertThat(newIds()).containsOnly("");
    }

    /** The boundary is random, so the body would give another ID each time. */
    @Test
    void multipartBodiesAreDistinguishedByTheirOrderOnly() {
        for (int execution = 0; execution < 2; execution++) {
            String boundary = "boundary-" + execution;
            Orders orders = orders(
                    fast().build(),
                    b -> b.encoder((object, type, template) -> {
                        template.header("Content-Type", "multipart/form-data; boundary=" + boundary);
                        template.body(boundary + object);
                    }));
            within(InboundRequest.of("inbound"), () -> {
                orders.create("a");
                orders.create("b");
            });
        }
        assertThat(server.ids()).hasSize(4);
        assertThat(server.ids().subList(2, 4)).isEqualTo(server.ids().subList(0, 2));
        assertThat(new HashSet<>(server.ids())).hasSize(2);
    }

    @Test
    void carriedToAnotherThreadItIsStillTheSameRequest() {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        try {
            Orders orders = orders();
            within(InboundRequest.of("inbound"), () -> orders.create("a"));
            within(
                    InboundRequest.of("inbound"),
                    () -> CompletableFuture.supplyAsync(() -> orders.create("a"), IdempotenceScope.carrying(pool))
                            .join());
            assertThat(new HashSet<>(newIds())).hasSize(1);
        } finally {
            pool.shutdownNow();
        }
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void scopeHoldsOnVirtualThreads() throws ReflectiveOperationException {
        Orders orders = orders();
        Executor threads = virtualThreads();
        server.respond(Reply.status(503));
        IdempotenceScope.with(
                JOB,
                () -> CompletableFuture.runAsync(
                                () -> {
                                    assertVirtual();
                                    orders.create("a");
                                },
                                IdempotenceScope.carrying(threads))
                        .join());
        CompletableFuture.runAsync(() -> IdempotenceScope.with(JOB, () -> orders.create("a")), threads)
                .join();
        assertThat(newIds()).containsExactly("\"job-1\"", "\"job-1\"", "\"job-1\"");
    }

    /** By reflection, as tests are compiled for 17. */
    private static Executor virtualThreads() throws ReflectiveOperationException {
        return (Executor)
                Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    }

    private static void assertVirtual() {
        try {
            assertThat(Thread.class.getMethod("isVirtual").invoke(Thread.currentThread()))
                    .isEqualTo(true);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }

    // ---- across a crash

    @Test
    void savedIdWithinAnInboundRequestIsTheDerivedOne() {
        List<IdempotenceId> saved = new ArrayList<>();
        within(InboundRequest.of("inbound"), () -> IdempotenceScope.saving(saved::add, () -> orders().create("a")));
        within(InboundRequest.of("inbound"), () -> orders().create("a"));
        assertThat(new HashSet<>(newIds())).containsExactly("\"" + saved.get(0) + "\"");
    }

    @Test
    void resumingWithoutACallIsAnError() {
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().list()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("no call that carries an ID");
        assertThat(newIds()).containsExactly("");
    }

    /** The caller keeps the ID in the argument it always was in. */
    @Test
    void resumedCallWithItsIdAsAHeaderArgumentIsAsInDoubtAsAnyOther() {
        Instant sent = Instant.now().minusSeconds(3600);
        assertThat(IdempotenceScope.resume(JOB, sent, () -> orders().createAs("job-1")))
                .isEqualTo("ok");
        server.respond(Reply.status(401));
        FeignOutcomeUnknownException unknown = catchThrowableOfType(
                FeignOutcomeUnknownException.class,
                () -> IdempotenceScope.resume(JOB, sent, () -> orders().createAs("job-1")));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(sent);
        assertThat(newIds()).containsExactly("job-1", "job-1");
        Instant longAgo = sent.minus(Duration.ofHours(24));
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, longAgo, () -> orders().createAs("job-1")))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("server-retention");
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void resumedCallWithAnotherIdAsAHeaderArgumentIsNotSent() {
        Instant now = Instant.now();
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, now, () -> orders().createAs("mine")))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("another ID than the IdempotenceScope.resume");
        assertThat(server.requests()).isEmpty();
    }

    // ---- settings of one method

    @Test
    void methodHasSettingsOfItsOwn() {
        Orders orders = orders(fast().maxAttempts(1)
                .client("orders#create", own -> own.maxAttempts(4))
                .client("orders#put", own -> own.methods("PUT"))
                .build());
        server.respond(Reply.status(503), Reply.status(503), Reply.status(503));
        assertThat(orders.create("a")).isEqualTo("ok");
        assertThat(newIds()).hasSize(4);
        server.respond(Reply.status(503));
        assertThatThrownBy(() -> orders.tick()).isInstanceOf(FeignException.ServiceUnavailable.class);
        newIds();
        orders.put("a");
        orders.tick();
        assertThat(newIds()).doesNotContain("");
    }
}
