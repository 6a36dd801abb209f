package io.idempotence.examples.snippets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.Feign;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.timelimiter.TimeLimiter;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.examples.payments.api.PaymentOrder;
import io.idempotence.examples.payments.consumer.PaymentClient;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A retry around the client asks under one ID, whatever thread it asks on. */
class RetrySnippetTest {
    private static final PaymentOrder ORDER = new PaymentOrder(7, 100);
    private static final byte[] PAYMENT = "{\"number\": 1, \"order\": 7}".getBytes(StandardCharsets.UTF_8);

    private static final IdempotenceClientConfig PATIENT =
            IdempotenceClientConfig.builder().deadline(Duration.ofMinutes(2)).build();

    private final ScheduledExecutorService threads = Executors.newScheduledThreadPool(16);
    private final TimeLimiter limit = TimeLimiter.of(Duration.ofSeconds(2));
    private final CountDownLatch over = new CountDownLatch(1);
    private final AtomicInteger held = new AtomicInteger();
    private final List<String> ids = new CopyOnWriteArrayList<>();
    private final List<IdempotenceId> book = new CopyOnWriteArrayList<>();
    private HttpServer provider;

    @BeforeEach
    void starts() throws Exception {
        provider = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        provider.setExecutor(threads);
        provider.createContext("/", this::respond);
        provider.start();
        // The first calls load classes. On a busy machine that takes longer than the limit.
        TimeLimiter patient = TimeLimiter.of(Duration.ofMinutes(2));
        retrying(patient).pay(ORDER);
        retryingLater(patient).pay(ORDER).toCompletableFuture().join();
        ids.clear();
        book.clear();
    }

    @AfterEach
    void stops() {
        over.countDown();
        provider.stop(0);
        threads.shutdownNow();
    }

    /** The first requests are taken and get no response, as many as are held. */
    private void respond(HttpExchange exchange) throws IOException {
        try (exchange) {
            exchange.getRequestBody().readAllBytes();
            ids.add(exchange.getRequestHeaders().getFirst("Idempotency-Key"));
            if (held.getAndDecrement() > 0) {
                over.await();
                return;
            }
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, PAYMENT.length);
            exchange.getResponseBody().write(PAYMENT);
            exchange.getResponseBody().flush();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private String url() {
        return "http://127.0.0.1:" + provider.getAddress().getPort();
    }

    private RetrySnippet retrying(TimeLimiter limit) {
        PaymentClient payments = IdempotentFeign.install(
                        Feign.builder().encoder(new JacksonEncoder()).decoder(new JacksonDecoder()), PATIENT)
                .target(PaymentClient.class, url());
        return new RetrySnippet(payments, threads, limit, (order, id) -> book.add(id));
    }

    private AsyncRetrySnippet retryingLater(TimeLimiter limit) {
        AsyncRetrySnippet.Payments payments = IdempotentFeign.install(
                        AsyncFeign.builder()
                                .client(new AsyncClient.Default<>(new Client.Default(null, null), threads))
                                .encoder(new JacksonEncoder())
                                .decoder(new JacksonDecoder()),
                        PATIENT)
                .target(AsyncRetrySnippet.Payments.class, url());
        return new AsyncRetrySnippet(
                payments, threads, Retry.ofDefaults("payments"), limit, (order, id) -> book.add(id));
    }

    private void assertOneId() {
        assertThat(Set.copyOf(ids)).containsExactly("\"" + book.get(0) + "\"");
        assertThat(book).hasSize(1);
    }

    @Test
    void runAfterATimeLimitAsksUnderTheSameId() throws Exception {
        held.set(1);
        assertThat(retrying(limit).pay(ORDER).number()).isEqualTo(1);
        // On a busy machine a later run may be limited as well.
        assertThat(ids).hasSizeGreaterThan(1);
        assertOneId();
    }

    @Test
    void callThatNeverGotAResponseHasItsIdInTheBook() throws Exception {
        held.set(3);
        RetrySnippet snippet = retrying(limit);
        assertThatThrownBy(() -> snippet.pay(ORDER)).isInstanceOf(TimeoutException.class);
        assertOneId();
        // On a busy machine a run may have ended before its request left.
        held.set(0);
        // Minutes later, perhaps after a restart.
        PaymentClient payments = IdempotentFeign.install(
                        Feign.builder().encoder(new JacksonEncoder()).decoder(new JacksonDecoder()))
                .target(PaymentClient.class, url());
        assertThat(IdempotenceScope.resume(book.get(0), Instant.now(), () -> payments.pay(ORDER))
                        .number())
                .isEqualTo(1);
        assertOneId();
    }

    @Test
    void runOfAFutureAfterATimeLimitAsksUnderTheSameId() {
        held.set(1);
        assertThat(retryingLater(limit).pay(ORDER).toCompletableFuture().join().number())
                .isEqualTo(1);
        // On a busy machine a later run may be limited as well.
        assertThat(ids).hasSizeGreaterThan(1);
        assertOneId();
    }
}
