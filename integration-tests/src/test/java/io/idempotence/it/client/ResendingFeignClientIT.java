package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.Response;
import feign.hc5.ApacheHttp5Client;
import feign.http2client.Http2Client;
import feign.micrometer.MeteredClient;
import feign.micrometer.MicrometerObservationCapability;
import io.github.resilience4j.circuitbreaker.CallNotPermittedException;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.it.wire.RawServer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.observation.ObservationRegistry;
import java.io.IOException;
import java.net.Proxy;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.apache.hc.client5.http.classic.ExecChain;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.HttpException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * HTTP clients that by themselves send a request more than once, and report the last failure or response only. The first request is
 * executed and its response lost, and the second one is refused a connection or ends with an error. Such a call is in doubt. A call whose
 * first request is refused a connection is not.
 */
class ResendingFeignClientIT {
    /** With a body and without one. */
    private static final List<Function<Orders, Object>> CALLS = List.of(orders -> orders.create("x"), Orders::tick);

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    private static Client streaming() {
        return new Client.Default(null, null);
    }

    /** A client like Spring Cloud's load balancer with retries, which goes to the next instance after a failure. */
    private record FailingOver(Client delegate) implements Client {
        @Override
        public Response execute(Request request, Request.Options options) throws IOException {
            try {
                return delegate.execute(request, options);
            } catch (IOException e) {
                return delegate.execute(request, options);
            }
        }
    }

    private enum Resending {
        WRAPPER,
        LAMBDA,
        MEASURED,
        OF_OKHTTP;

        Client client() {
            return switch (this) {
                case WRAPPER -> new FailingOver(streaming());
                case LAMBDA -> {
                    Client failingOver = new FailingOver(streaming());
                    yield (request, options) -> failingOver.execute(request, options);
                }
                case MEASURED -> new MeteredClient(new FailingOver(streaming()), new SimpleMeterRegistry());
                case OF_OKHTTP -> new FailingOver(new feign.okhttp.OkHttpClient());
            };
        }
    }

    private static Orders orders(BaseBuilder<?, ?> builder, String url) {
        return WireMockTestBase.target(
                WireMockTestBase.install(
                        builder.options(WireMockTestBase.readTimeout(20_000)),
                        IdempotenceClientConfig.builder()
                                .deadline(Duration.ofMinutes(2))
                                .maxAttempts(1)
                                .build()),
                url);
    }

    /** How a call ends whose first sending is lost, while every later one is refused. */
    static Throwable endAfterALostResponse(BaseBuilder<?, ?> builder, Function<Orders, Object> call) {
        AtomicInteger executed = new AtomicInteger();
        AtomicReference<RawServer> itself = new AtomicReference<>();
        try (RawServer server = RawServer.start((request, socket) -> {
            executed.incrementAndGet();
            itself.get().stopListening();
        })) {
            itself.set(server);
            Throwable end = catchThrowable(() -> call.apply(orders(builder, server.url())));
            assertThat(executed).hasValue(1);
            return end;
        }
    }

    @ParameterizedTest
    @EnumSource
    void executedCallWhoseSecondSendingIsRefusedIsNotReportedAsNotSent(Resending resending) {
        assertThat(endAfterALostResponse(Feign.builder().client(resending.client()), orders -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(endAfterALostResponse(Feign.builder().client(resending.client()), Orders::tick))
                .isInstanceOf(OutcomeUnknown.class);
    }

    @ParameterizedTest
    @EnumSource
    void executedFutureWhoseSecondSendingIsRefusedIsNotReportedAsNotSent(Resending resending) {
        assertThat(endAfterALostResponse(
                        AsyncFeign.builder().client(new AsyncClient.Default<>(resending.client(), threads)),
                        orders -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(endAfterALostResponse(
                        AsyncFeign.builder().client(new AsyncClient.Default<>(resending.client(), threads)),
                        Orders::tick))
                .isInstanceOf(OutcomeUnknown.class);
    }

    @Test
    void executedFutureThatItsClientSendsAgainIsNotReportedAsNotSent() {
        AsyncClient<Object> once = new AsyncClient.Default<>(streaming(), threads);
        AsyncClient<Object> twice = (request, options, context) -> once.execute(request, options, context)
                .handle((response, thrown) -> thrown == null
                        ? CompletableFuture.completedFuture(response)
                        : once.execute(request, options, context))
                .thenCompose(next -> next);
        assertThat(endAfterALostResponse(AsyncFeign.builder().client(twice), orders -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class);
    }

    /** Its default strategy repeats methods that HTTP calls idempotent. */
    @Test
    void executedPutThatApacheHttpClientSendsAgainIsNotReportedAsNotSent() throws IOException {
        try (CloseableHttpClient resending = HttpClients.createDefault()) {
            assertThat(endAfterALostResponse(
                            Feign.builder().client(new ApacheHttp5Client(resending)),
                            orders -> orders.protectedPut("x")))
                    .isInstanceOf(OutcomeUnknown.class);
        }
    }

    /** A layer inside an HTTP client, around the request that it sends. */
    private enum Inside {
        RETRY,
        RETRY_WITH_A_CLONE,
        RETRY_AROUND_A_BREAKER,
        CLONE_WITHIN_A_RETRY_AROUND_A_BREAKER;

        okhttp3.Response send(okhttp3.Interceptor.Chain chain) throws IOException {
            try {
                return this == CLONE_WITHIN_A_RETRY_AROUND_A_BREAKER
                        ? chain.call().clone().execute()
                        : chain.proceed(chain.request());
            } catch (IOException e) {
                if (this != RETRY && this != RETRY_WITH_A_CLONE) {
                    refuse();
                }
                return this == RETRY_WITH_A_CLONE ? chain.call().clone().execute() : chain.proceed(chain.request());
            }
        }

        ClassicHttpResponse send(ClassicHttpRequest request, ExecChain.Scope scope, ExecChain chain)
                throws IOException, HttpException {
            try {
                return chain.proceed(request, scope);
            } catch (IOException e) {
                refuse();
                throw e;
            }
        }

        private static void refuse() {
            CircuitBreaker breaker = CircuitBreaker.ofDefaults("inside");
            breaker.transitionToOpenState();
            breaker.acquirePermission();
        }
    }

    private static feign.okhttp.OkHttpClient okHttpWith(Inside inside) {
        // A clone passes the interceptor as well, and only the original retries.
        Set<okhttp3.Request> original = ConcurrentHashMap.newKeySet();
        return new feign.okhttp.OkHttpClient(new okhttp3.OkHttpClient.Builder()
                .retryOnConnectionFailure(false)
                .addInterceptor(chain ->
                        original.add(chain.call().request()) ? inside.send(chain) : chain.proceed(chain.request()))
                .build());
    }

    @ParameterizedTest
    @EnumSource
    void executedCallThatAnInterceptorOfOkHttpSendsAgainIsNotReportedAsNotSent(Inside inside) {
        for (Function<Orders, Object> call : CALLS) {
            assertThat(endAfterALostResponse(Feign.builder().client(okHttpWith(inside)), call))
                    .isInstanceOf(OutcomeUnknown.class);
        }
    }

    /** OkHttp ends its thread on what is no {@code IOException}, and turns it into one. */
    @ParameterizedTest
    @EnumSource(names = {"RETRY", "RETRY_WITH_A_CLONE"})
    void executedFutureThatAnInterceptorOfOkHttpSendsAgainIsNotReportedAsNotSent(Inside inside) {
        for (Function<Orders, Object> call : CALLS) {
            assertThat(endAfterALostResponse(AsyncFeign.builder().client(okHttpWith(inside)), call))
                    .isInstanceOf(OutcomeUnknown.class);
        }
    }

    /** How the second of two calls ends, which is executed, and sent again because its kept connection breaks. */
    private static Throwable endAfterABrokenConnection(BaseBuilder<?, ?> builder, String next) {
        AtomicInteger executed = new AtomicInteger();
        try (RawServer server = RawServer.start((request, socket) -> {
            if (executed.get() > 0) {
                write(socket, next);
                return;
            }
            write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            RawServer.read(socket.getInputStream());
            executed.incrementAndGet();
        })) {
            Orders orders = orders(builder, server.url());
            assertThat(orders.create("x")).isEqualTo("ok");
            Throwable end = catchThrowable(() -> orders.create("x"));
            assertThat(executed).hasValue(1);
            return end;
        }
    }

    private static void write(Socket socket, String response) throws IOException {
        socket.getOutputStream().write(response.getBytes(StandardCharsets.ISO_8859_1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"401 Unauthorized", "503 Service Unavailable"})
    void executedCallThatOkHttpSendsAgainByItselfIsNotReportedAsFailed(String next) {
        String response = "HTTP/1.1 " + next + "\r\nContent-Length: 0\r\n\r\n";
        assertThat(endAfterABrokenConnection(Feign.builder().client(new feign.okhttp.OkHttpClient()), response))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(endAfterABrokenConnection(AsyncFeign.builder().client(new feign.okhttp.OkHttpClient()), response))
                .isInstanceOf(OutcomeUnknown.class);
    }

    private static feign.okhttp.OkHttpClient okHttpWith(okhttp3.Interceptor interceptor) {
        return new feign.okhttp.OkHttpClient(
                new okhttp3.OkHttpClient.Builder().addInterceptor(interceptor).build());
    }

    private static okhttp3.Response noNetwork(okhttp3.Request request) {
        return new okhttp3.Response.Builder()
                .request(request)
                .protocol(okhttp3.Protocol.HTTP_1_1)
                .code(503)
                .message("no network")
                .body(okhttp3.ResponseBody.create("", null))
                .build();
    }

    @Test
    void executedCallForWhichAnInterceptorOfOkHttpRespondsIsNotReportedAsFailed() {
        feign.okhttp.OkHttpClient responding = okHttpWith(chain -> {
            try {
                return chain.proceed(chain.request());
            } catch (IOException e) {
                return noNetwork(chain.request());
            }
        });
        for (Function<Orders, Object> call : CALLS) {
            assertThat(endAfterALostResponse(Feign.builder().client(responding), call))
                    .isInstanceOf(OutcomeUnknown.class);
        }
    }

    /** How a call ends of which a server gets requests, and responds to each with the next status. The last one is for all others. */
    private static Throwable endAfterResponses(feign.okhttp.OkHttpClient client, String headers, int... statuses) {
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server = RawServer.start((request, socket) -> write(
                socket,
                "HTTP/1.1 " + statuses[Math.min(requests.getAndIncrement(), statuses.length - 1)] + " no\r\n" + headers
                        + "Content-Length: 0\r\nConnection: close\r\n\r\n"))) {
            Orders orders = orders(Feign.builder().client(client), server.url());
            Throwable end = catchThrowable(() -> orders.create("x"));
            assertThat(requests).hasValue(statuses.length);
            return end;
        }
    }

    @ParameterizedTest
    @CsvSource({"504, 503", "200, 503", "200, 429", "500, 429", "500, 401", "503, 429"})
    void callWhoseFirstResponseAnInterceptorOfOkHttpHidesIsNotReportedAsFailed(int first, int second) {
        feign.okhttp.OkHttpClient sendingAgain = okHttpWith(chain -> {
            chain.proceed(chain.request()).close();
            return chain.proceed(chain.request());
        });
        assertThat(endAfterResponses(sendingAgain, "", first, second)).isInstanceOf(OutcomeUnknown.class);
        feign.okhttp.OkHttpClient responding = okHttpWith(chain ->
                chain.proceed(chain.request()).newBuilder().code(second).build());
        assertThat(endAfterResponses(responding, "", first)).isInstanceOf(OutcomeUnknown.class);
    }

    /** OkHttp repeats it at once, whatever {@code retryOnConnectionFailure}. */
    @ParameterizedTest
    @ValueSource(ints = {401, 429})
    void failureOfTheHandlerThatOkHttpRepeatsByItselfIsNotReportedAsARefusal(int next) {
        feign.okhttp.OkHttpClient repeating = new feign.okhttp.OkHttpClient(new okhttp3.OkHttpClient.Builder()
                .retryOnConnectionFailure(false)
                .build());
        assertThat(endAfterResponses(repeating, "Retry-After: 0\r\n", 503, next))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(endAfterResponses(repeating, "Retry-After: 0\r\n", 503, 500))
                .isNotInstanceOf(OutcomeUnknown.class)
                .isInstanceOfSatisfying(
                        FeignException.class,
                        failure -> assertThat(failure.status()).isEqualTo(500));
    }

    /** The exception of the second connection does not show it, and the wrapper hides the client from Feign's side. */
    @Test
    void failureOfTheHandlerThatOkHttpRepeatsInAWrapperIsReportedByTheClientHalfBelow() {
        Client measured = new MeteredClient(
                new feign.okhttp.OkHttpClient(IdempotentOkHttp.install(new okhttp3.OkHttpClient.Builder())
                        .build()),
                new SimpleMeterRegistry());
        AtomicInteger requests = new AtomicInteger();
        AtomicReference<RawServer> itself = new AtomicReference<>();
        try (RawServer server = RawServer.start((request, socket) -> {
            requests.incrementAndGet();
            itself.get().stopListening();
            write(socket, "HTTP/1.1 503 no\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        })) {
            itself.set(server);
            Orders orders = orders(Feign.builder().client(measured), server.url());
            assertThat(catchThrowable(() -> orders.create("x"))).isInstanceOf(OutcomeUnknown.class);
        }
        assertThat(requests).hasValue(1);
    }

    @Test
    void executedCallThatACircuitBreakerInApacheHttpClientRefusesIsNotReportedAsNotSent() throws IOException {
        try (CloseableHttpClient refusing = HttpClients.custom()
                .disableAutomaticRetries()
                .addExecInterceptorFirst("breaker", Inside.RETRY_AROUND_A_BREAKER::send)
                .build()) {
            for (Function<Orders, Object> call : CALLS) {
                assertThat(endAfterALostResponse(Feign.builder().client(new ApacheHttp5Client(refusing)), call))
                        .isInstanceOf(OutcomeUnknown.class)
                        .hasCauseInstanceOf(CallNotPermittedException.class);
            }
        }
    }

    private static void assertNotSent(BaseBuilder<?, ?> builder, Function<Orders, Object> call) {
        assertThat(catchThrowable(() -> call.apply(orders(builder, WireMockTestBase.nobody()))))
                .isInstanceOf(FeignException.class)
                .isNotInstanceOf(OutcomeUnknown.class);
    }

    @ParameterizedTest
    @EnumSource
    void refusedConnectionIsStillReportedAsNotSentByEachClientThatSendsOnce(FeignHttpClient client) throws IOException {
        try (FeignHttpClient.Running running = client.start()) {
            assertNotSent(running.builder(), orders -> orders.create("x"));
        }
        // HttpURLConnection may have sent it before.
        if (client != FeignHttpClient.DEFAULT && client != FeignHttpClient.ASYNC_DEFAULT) {
            try (FeignHttpClient.Running running = client.start()) {
                assertNotSent(running.builder(), Orders::tick);
            }
        }
    }

    private enum SendingOnce {
        MEASURED,
        MEASURED_TWICE,
        OBSERVED,
        OVER_A_PROXY;

        Client client() {
            MicrometerObservationCapability observing =
                    new MicrometerObservationCapability(ObservationRegistry.create());
            return switch (this) {
                case MEASURED -> new MeteredClient(streaming(), new SimpleMeterRegistry());
                case MEASURED_TWICE -> new MeteredClient(MEASURED.client(), new SimpleMeterRegistry());
                case OBSERVED -> observing.enrich((Client) new Http2Client());
                case OVER_A_PROXY -> new Client.Proxied(null, null, Proxy.NO_PROXY);
            };
        }
    }

    @ParameterizedTest
    @EnumSource
    void refusedConnectionIsStillReportedAsNotSentByClientsThatOnlyMeasure(SendingOnce once) {
        assertNotSent(Feign.builder().client(once.client()), orders -> orders.create("x"));
        assertNotSent(
                AsyncFeign.builder().client(new AsyncClient.Default<>(once.client(), threads)),
                orders -> orders.create("x"));
    }
}
