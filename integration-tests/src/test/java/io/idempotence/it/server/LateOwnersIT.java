package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.OnAbandoned;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestSettings;
import io.idempotence.server.storage.FaultyStorage;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Owners that lost their lease while their handler ran. */
class LateOwnersIT extends FilterTestBase {
    private final CountDownLatch started = new CountDownLatch(1);
    private final CountDownLatch mayEnd = new CountDownLatch(1);

    private static IdempotencePolicy.Builder shortLease() {
        return IdempotencePolicy.builder().lease(Duration.ofMillis(200)).onAbandoned(OnAbandoned.RE_EXECUTE);
    }

    @BeforeEach
    void abandonedRequestsRunAgain() {
        policy = shortLease().build();
    }

    @Test
    @DisplayName("T7, T14: a late owner's caller gets the response of the one that took over")
    void aLateOwnersCallerGetsTheResponseOfTheOneThatTookOver() {
        ServletServer server = serveOvertaken("paid by the second", 1000);
        CompletableFuture<HttpResponse<byte[]>> late = callOvertaken(server, "paid by the second");
        assertThat(text(late.join())).isEqualTo("paid by the second");
        assertThat(replayed(late.join())).isTrue();
        assertThat(runs).hasValue(2);
        assertThat(events).contains(IdempotenceEvent.TAKE_OVER, IdempotenceEvent.FENCED);
    }

    @Test
    @DisplayName("T14: a late owner's caller gets its own response if the canonical one was not kept")
    void aLateOwnersCallerGetsItsOwnResponseIfTheCanonicalOneWasNotKept() {
        ServletServer server = serveOvertaken("paid by the second, in many words", 20);
        CompletableFuture<HttpResponse<byte[]>> late = callOvertaken(server, "paid by the second, in many words");
        assertThat(late.join().statusCode()).isEqualTo(201);
        assertThat(text(late.join())).isEqualTo("paid by the first");
        assertThat(replayed(late.join())).isFalse();
        assertThat(refusal(call(server))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(2);
    }

    @Test
    @DisplayName("T14: a late owner that ends with an error page gives the response of the one that took over")
    void aLateOwnersErrorPageIsNotGivenInPlaceOfTheResponse() {
        lateEnd = response -> response.sendError(402, "declined");
        ServletServer server = serveOvertaken("paid by the second", 1000);
        CompletableFuture<HttpResponse<byte[]>> late = callOvertaken(server, "paid by the second");
        assertThat(text(late.join())).isEqualTo("paid by the second");
        assertThat(text(call(server))).isEqualTo("paid by the second");
    }

    @Test
    @DisplayName("T14: nor does a late owner whose kept exception becomes an error page")
    void aLateOwnersExceptionIsNotGivenInPlaceOfTheResponse() {
        policy = shortLease()
                .exception(IllegalStateException.class, Verdict.KEEP)
                .build();
        lateEnd = response -> {
            throw new IllegalStateException("declined");
        };
        ServletServer server = serveOvertaken("paid by the second", 1000);
        CompletableFuture<HttpResponse<byte[]>> late = callOvertaken(server, "paid by the second");
        assertThat(text(late.join())).isEqualTo("paid by the second");
    }

    @Test
    @DisplayName(
            "T14: the response in place of a late owner's has the headers of filters in front, and none of the late owner's")
    void headersOfFiltersInFrontStayWhenAResponseIsReplaced() {
        lateEnd = response -> {
            response.setHeader("X-Frame-Options", "SAMEORIGIN");
            response.addHeader("Vary", "Accept");
            response.setHeader("X-Late", "late");
            response.setHeader("X-Front", null);
            response.addCookie(new Cookie("late", "l"));
            respond(response, 201, "paid by the first");
        };
        ServletServer server = serveOvertaken("paid by the second", 1000);
        HttpResponse<byte[]> late = callOvertaken(server, "paid by the second").join();
        assertThat(text(late)).isEqualTo("paid by the second");
        assertThat(late.headers().allValues("X-Front")).containsExactly("seen");
        assertThat(late.headers().allValues("X-Frame-Options")).containsExactly("DENY");
        assertThat(late.headers().allValues("Vary")).containsExactly("Origin", "Cookie");
        // Undertow keeps cookies through a reset, and has no other way to remove one.
        assertThat(late.headers().allValues("Set-Cookie"))
                .hasSize(container == Container.UNDERTOW ? 2 : 1)
                .anyMatch(cookie -> cookie.startsWith("front=f"));
        assertThat(late.headers().allValues("X-Late")).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"application/json", "none"})
    @DisplayName("T14: the response in place of a late owner's has its own type and charset, or none")
    void typeOfALateOwnerIsNotThatOfAnotherResponse(String type) {
        secondType = type.equals("none") ? null : type;
        ServletServer server = serveOvertaken("paid by the second", 1000);
        HttpResponse<byte[]> late = callOvertaken(server, "paid by the second").join();
        assertThat(text(late)).isEqualTo("paid by the second");
        assertThat(late.headers().allValues("Content-Type"))
                .isEqualTo(call(server).headers().allValues("Content-Type"));
    }

    private interface End {
        void end(HttpServletResponse response) throws IOException;
    }

    private End lateEnd = response -> respond(response, 201, "paid by the first");
    private @Nullable String secondType = "text/plain";

    private ServletServer serveOvertaken(String second, int maxResponseBody) {
        Idempotence idempotence = idempotence(new FaultyStorage(redisStorage()).withoutRenewals());
        return start(
                (request, response) -> {
                    if (runs.get() == 1) {
                        started.countDown();
                        awaitLatch(mayEnd);
                        lateEnd.end(response);
                    } else {
                        response.setStatus(201);
                        response.setContentType(secondType);
                        response.getOutputStream().print(second);
                    }
                },
                context -> {
                    RequestSettings.choose(context, this::chosen);
                    inFront(context, (request, response, chain) -> {
                        HttpServletResponse http = (HttpServletResponse) response;
                        http.setHeader("X-Front", "seen");
                        http.setHeader("X-Frame-Options", "DENY");
                        http.addHeader("Vary", "Origin");
                        http.addHeader("Vary", "Cookie");
                        http.addCookie(new Cookie("front", "f"));
                        chain.doFilter(request, response);
                    });
                    IdempotenceFilter.builder(idempotence)
                            .maxResponseBody(maxResponseBody)
                            .build()
                            .install(context);
                });
    }

    /** A duplicate that the machine delays must not overtake the second owner as well. */
    private RequestSettings chosen(HttpServletRequest request, RequestSettings settings) {
        if (started.getCount() > 0) {
            return settings;
        }
        Duration usual = IdempotencePolicy.defaults().lease();
        return with(settings.policy().toBuilder().lease(usual).build(), settings);
    }

    /** The late owner's response, after another one has taken over and ended with its own. */
    private CompletableFuture<HttpResponse<byte[]>> callOvertaken(ServletServer server, String second) {
        CompletableFuture<HttpResponse<byte[]>> late = sendUntil(
                started, () -> Http.sendAsync(request("POST", server.uri("/payments"), id, "{\"amount\":5}")));
        assertThat(text(awaitEnd(server))).isEqualTo(second);
        mayEnd.countDown();
        return late;
    }
}
