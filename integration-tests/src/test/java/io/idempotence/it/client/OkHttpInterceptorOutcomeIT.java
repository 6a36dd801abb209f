package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.it.wire.Drip;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Call;
import okhttp3.Dispatcher;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import okio.Buffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The ends of calls whose callers enqueue them, give up, or set a time limit of their own. */
class OkHttpInterceptorOutcomeIT extends OkHttpInterceptorTestBase {
    private static final long SOON = 60;

    // ---- enqueue

    @Test
    void enqueuedCallIsRetriedAndGetsItsResponse() throws Exception {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(503));
        try (Response response = enqueue(installed().newCall(order().build())).get(SOON, TimeUnit.SECONDS)) {
            assertThat(response.body().string()).isEqualTo(OK);
        }
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(attemptEvents)
                .extracting(IdempotenceClientAttemptEvent::number)
                .containsExactly(1, 2, 3);
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void enqueuedCallFailsWithTheTypedException() {
        alwaysGet(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        assertThat(failure(enqueue(installed().newCall(order().build()))))
                .isInstanceOf(OkHttpOutcomeUnknownException.class);
    }

    /** OkHttp notifies the callback by itself. Our half had not begun, and the ID is still free. */
    @Test
    void enqueuedCallThatTheExecutorRejectsIsNotSentAndTheNextOneHasItsId() {
        ExecutorService closed = Executors.newSingleThreadExecutor();
        closed.shutdown();
        OkHttpClient client = installed(fast(), builder -> builder.dispatcher(new Dispatcher(closed)));
        IdempotenceScope.<Boolean, RuntimeException>with(IdempotenceId.of("job-1"), () -> {
            assertThat(failure(enqueue(client.newCall(order().build()))))
                    .isExactlyInstanceOf(InterruptedIOException.class)
                    .hasMessage("executor rejected");
            assertThat(received()).isEmpty();
            assertThat(events).isEmpty();
            try {
                assertThat(ok(client, order())).isEqualTo(OK);
            } catch (IOException e) {
                throw new AssertionError(e);
            }
            return true;
        });
        assertThat(ids()).containsExactly("\"job-1\"");
        assertEnd(SUCCEEDED, 1);
    }

    /** OkHttp throws "Canceled" in place of a response, which would read as "not executed". */
    @Test
    void failureOfTheHandlerBeforeAConnectThatIsInterruptedIsUnknown() {
        attempt(1, status(500));
        AtomicInteger requests = new AtomicInteger();
        OkHttpClient client = installed()
                .newBuilder()
                .addInterceptor(chain -> {
                    if (requests.incrementAndGet() == 2) {
                        Thread.currentThread().interrupt();
                        while (!chain.call().isCanceled()) {
                            Thread.onSpinWait();
                        }
                        throw new ConnectException("interrupted");
                    }
                    return chain.proceed(chain.request());
                })
                .build();
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(Thread.interrupted()).isTrue();
        assertEnd(UNKNOWN, 2);
    }

    /** OkHttp throws "Canceled" in place of a response, which would read as "not executed". */
    @ParameterizedTest
    @ValueSource(ints = {200, 400, 500})
    void responseThatTheDeadlineOvertakesIsUnknown(int status) throws IOException {
        warmUp();
        alwaysGet(status(status));
        OkHttpClient client =
                installed(fast().deadline(Duration.ofMillis(2_500)), OkHttpInterceptorOutcomeIT::awaitingItsEnd);
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(received()).hasSize(1);
    }

    @Test
    void responseThatAnInterruptOvertakesIsUnknown() {
        OkHttpClient client = installed(
                fast(),
                builder -> awaitingItsEnd(builder).addInterceptor(chain -> {
                    Response response = chain.proceed(chain.request());
                    Thread.currentThread().interrupt();
                    return response;
                }));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(Thread.interrupted()).isTrue();
        assertEnd(UNKNOWN, 1);
    }

    /** Adds an interceptor that holds each response until the call is cancelled. */
    private static OkHttpClient.Builder awaitingItsEnd(OkHttpClient.Builder builder) {
        return builder.addInterceptor(chain -> {
            Response response = chain.proceed(chain.request());
            while (!chain.call().isCanceled()) {
                Thread.onSpinWait();
            }
            return response;
        });
    }

    /** An interceptor in front that decompresses would fail on it. */
    @Test
    void responseWithoutABodyOfTheHandlersFailureHasNoHeadersOfOne() throws IOException {
        alwaysGet(status(401));
        attempt(1, status(500).withHeader("Content-Encoding", "br").withHeader("X-Trace", "7"));
        try (Response response = installed().newCall(order().build()).execute()) {
            assertThat(response.code()).isEqualTo(500);
            assertThat(response.body().bytes()).isEmpty();
            assertThat(response.header("X-Trace")).isEqualTo("7");
            for (String name : List.of("Content-Encoding", "Content-Length", "Transfer-Encoding")) {
                assertThat(response.header(name)).as(name).isNull();
            }
        }
        assertEnd(FAILED, 2);
    }

    // ---- asked again

    @Test
    void resumedCallWhoseBodyCannotBeWrittenIsAsUnknownAsBefore() {
        IdempotenceId id = IdempotenceId.of("job-1");
        OkHttpClient client = installed();
        Request.Builder unreadable = order().post(body(sink -> {
            throw new IOException("gone");
        }));
        assertThatThrownBy(() -> IdempotenceScope.resume(id, Instant.now(), () -> send(client, unreadable)))
                .isInstanceOf(OkHttpOutcomeUnknownException.class)
                .hasRootCauseMessage("gone");
        assertThatThrownBy(() -> send(client, unreadable))
                .isExactlyInstanceOf(IOException.class)
                .hasMessage("gone");
        assertThat(received()).isEmpty();
    }

    /** So it looks as well after the caller's clock was put right: the time it noted is then one to come, or one too long ago. */
    @Test
    void callerWhoseClockJumpedIsNotLetPastTheRetentionAndAsksAgainBeforeIt() throws IOException {
        IdempotenceId id = IdempotenceId.of("job-1");
        OkHttpClient client = installed();
        Instant longAgo = Instant.now().minus(Duration.ofHours(24));
        assertThatThrownBy(() -> IdempotenceScope.resume(id, longAgo, () -> status(client, order())))
                .hasRootCauseInstanceOf(IllegalStateException.class)
                .hasStackTraceContaining("server-retention");
        assertThat(received()).isEmpty();
        Instant toCome = Instant.now().plus(Duration.ofHours(24));
        assertThat(IdempotenceScope.<String, IOException>resume(id, toCome, () -> ok(client, order())))
                .isEqualTo(OK);
        assertThat(ids()).containsExactly("\"job-1\"");
    }

    // ---- cancel

    @Test
    void callThatIsCancelledInFlightMakesNoFurtherAttempt() throws Exception {
        CountDownLatch arrived = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        try (RawServer server = RawServer.start((request, client) -> {
            arrived.countDown();
            awaitLatch(end);
        })) {
            Call call = installed(fast(), builder -> builder.readTimeout(Duration.ofMinutes(1)))
                    .newCall(to(server.url()).build());
            CompletableFuture<Response> response = enqueue(call);
            awaitLatch(arrived);
            call.cancel();
            assertThat(failure(response)).isInstanceOf(OkHttpOutcomeUnknownException.class);
            end.countDown();
        }
        assertEnd(UNKNOWN, 1);
        assertThat(events.get(0).requests()).isEqualTo(1);
    }

    @Test
    void responseThatIsCancelledOnItsWayBackIsUnknown() {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    Response response = chain.proceed(chain.request());
                    chain.call().cancel();
                    return response;
                }));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(received()).hasSize(1);
    }

    @Test
    void callThatIsCancelledWhileItWaitsEndsAtOnce() {
        alwaysGet(status(503).withHeader("Retry-After", "25"));
        Call call = installed(fast().deadline(Duration.ofMinutes(2))).newCall(order().build());
        CompletableFuture<Response> response = enqueue(call);
        await().until(() -> attemptEvents.size() == 1);
        call.cancel();
        assertThat(failure(response)).isInstanceOf(IOException.class).hasMessage("Canceled");
        assertThat(received()).hasSize(1);
    }

    @Test
    void callThatIsCancelledBetweenPollsIsUnknownAtOnce() throws InterruptedException {
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After", "25"));
        Call call = installed(fast().deadline(Duration.ofMinutes(2))).newCall(order().build());
        InterruptedCaller caller = new InterruptedCaller(call::execute);
        await().until(() -> received().size() == 1 && caller.waits());
        call.cancel();
        assertThat(caller.thrown()).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(received()).hasSize(1);
    }

    // ---- interceptors that fail

    /** It may have sent the request in a way of its own once it has the body. */
    @Test
    void ioExceptionOfAnInterceptorBehindThatTookTheBodyLeavesDoubt() {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    chain.request().body().writeTo(new Buffer());
                    throw new IOException("no token");
                }));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(OkHttpOutcomeUnknownException.class)
                .hasRootCauseMessage("no token");
        assertEnd(UNKNOWN, 3);
    }

    @Test
    void ioExceptionOfAnInterceptorBehindThatTookNoBodyIsNotSent() {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    throw new IOException("no token");
                }));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessage("no token");
        assertThat(received()).isEmpty();
    }

    @Test
    void exceptionOfAnInterceptorAfterAFailureOfTheHandlerIsNotTheEnd() throws IOException {
        alwaysGet(status(500));
        AtomicInteger attempts = new AtomicInteger();
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    if (attempts.incrementAndGet() > 1) {
                        throw new IllegalStateException("no token");
                    }
                    return chain.proceed(chain.request());
                }));
        assertThat(status(client, order())).isEqualTo(500);
        assertEnd(FAILED, 2);
    }

    @Test
    void uncheckedExceptionOfAnInterceptorBeforeTheFirstRequestEndsTheCallAsItIs() {
        IllegalStateException stops = new IllegalStateException("no token");
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    throw stops;
                }));
        assertThatThrownBy(() -> send(client, order())).isSameAs(stops);
        assertEnd(FAILED, 1);
        assertThat(received()).isEmpty();
    }

    // ---- callTimeout

    /** The call ends by itself before OkHttp ends it, so that the caller sees the type. */
    @Test
    void callTimeoutShorterThanTheDeadlineIsTheDeadline() {
        alwaysGet(ok().withFixedDelay(3_000));
        OkHttpClient client = installed(
                fast(), builder -> builder.readTimeout(Duration.ofMinutes(1)).callTimeout(Duration.ofMillis(700)));
        // Where the machine pauses for the 100 ms in between, OkHttp ends the call after all.
        await().until(() -> {
            events.clear();
            provider.resetRequests();
            return catchThrowable(() -> send(client, order())) instanceof OkHttpOutcomeUnknownException;
        });
        assertEnd(UNKNOWN, 1);
        assertThat(received()).hasSize(1);
    }

    @Test
    void waitBeyondTheCallTimeoutIsNotBegun() throws IOException {
        alwaysGet(status(503).withHeader("Retry-After", "25"));
        OkHttpClient client = installed(
                fast().deadline(Duration.ofMinutes(2)), builder -> builder.callTimeout(Duration.ofSeconds(20)));
        assertThat(status(client, order())).isEqualTo(503);
        assertThat(received()).hasSize(1);
    }

    @Test
    void deadlineShorterThanTheCallTimeoutHolds() throws IOException {
        warmUp();
        alwaysGet(ok().withFixedDelay(20_000));
        OkHttpClient client = installed(
                fast().deadline(Duration.ofMillis(2_500)),
                builder -> builder.readTimeout(Duration.ofMinutes(1)).callTimeout(Duration.ofMinutes(1)));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
    }

    /** An interceptor in front used up a part of it, so it ends before the deadline that was taken from it. */
    @Test
    void callTimeoutThatEndsTheCallKeepsTheTypeAsItsCause() throws IOException {
        warmUp();
        try (RawServer server = RawServer.start((request, client) -> {
            Drip.forEver(client);
        })) {
            OkHttpClient client = installed(fast(), builder -> {
                builder.interceptors().add(0, chain -> {
                    long began = System.nanoTime();
                    await().until(() -> System.nanoTime() - began > TimeUnit.MILLISECONDS.toNanos(2_500));
                    return chain.proceed(chain.request());
                });
                return builder.callTimeout(Duration.ofSeconds(6));
            });
            assertThatThrownBy(() -> send(client, to(server.url())))
                    .isExactlyInstanceOf(InterruptedIOException.class)
                    .hasCauseInstanceOf(OkHttpOutcomeUnknownException.class);
        }
        assertEnd(UNKNOWN, 1);
    }

    // ---- set-up

    /** Without {@code install}'s own options: everything that is loaded is the default. */
    @Test
    void loadedConfigIsUsed() throws IOException {
        warmUp();
        attempt(1, status(503));
        assertThat(ok(built(IdempotentOkHttp.install(plain())), order())).isEqualTo(OK);
        assertOneId();
    }

    private static Throwable failure(CompletableFuture<Response> response) {
        try {
            response.get(SOON, TimeUnit.SECONDS).close();
            throw new AssertionError("there was a response");
        } catch (ExecutionException e) {
            return e.getCause();
        } catch (Exception e) {
            throw new AssertionError("the call does not end", e);
        }
    }
}
