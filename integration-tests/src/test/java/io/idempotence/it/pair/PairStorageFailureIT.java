package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.FeignRequestRefusedException;
import io.idempotence.server.redis.EmbeddedRedis;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A Redis that goes away and comes back while a client retries (promises P6 and P7). */
class PairStorageFailureIT extends PairTestBase {
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.startPersistent();
        startProvider(redis::connect);
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    @Test
    void redisKilledDuringThePaymentWhoseResponseIsLostAndTheRetriesStillGetTheReceipt() {
        handler.set((request, response) -> {
            String receipt = ledger.pay(order(request));
            redis.kill();
            respond(response, 201, receipt);
        });
        // Its third attempt waits for the restart.
        Payments payments = through(
                (request, n) -> {
                    if (n == 3) {
                        redis.restart();
                    }
                    return n == 1 ? RESPONSE_LOST : NONE;
                },
                fast(),
                okHttp(),
                50_000,
                instances());
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(proxy.statusLines().get(1)).contains(" 503");
    }

    @Test
    void redisThatStaysAwayAfterAPaymentWhoseResponseIsLostEndsInTheUnknownAndItsIdFindsTheReceiptLater() {
        handler.set((request, response) -> {
            String receipt = ledger.pay(order(request));
            redis.kill();
            respond(response, 201, receipt);
        });
        Payments payments = through(
                (request, n) -> n == 1 ? RESPONSE_LOST : NONE, fast().maxAttempts(2), okHttp(), 20_000, instances());
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> payments.pay("order-1"));
        assertThat(unknown.attempts()).isEqualTo(2);

        redis.restart();
        assertThat(IdempotenceScope.with(unknown.id(), () -> payments.pay("order-1")))
                .isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    @Test
    void redisRestartedUnderFortyCallersNeverMakesTwoPaymentsOfOneOrder() throws Exception {
        AtomicInteger requests = new AtomicInteger();
        Payments payments = through(
                (request, n) -> {
                    // One at a time, so that what comes after the 15th meets a dead Redis.
                    synchronized (requests) {
                        int total = requests.incrementAndGet();
                        if (total == 15) {
                            redis.kill();
                        } else if (total == 50) {
                            redis.restart();
                        }
                    }
                    return n == 1 && request.text().endsWith("3") ? RESPONSE_LOST : NONE;
                },
                fast().deadline(Duration.ofSeconds(30)),
                okHttp(),
                20_000,
                instances());
        Map<String, String> ends = concurrently(40, i -> {
            try {
                return payments.pay("order-" + i);
            } catch (FeignRequestRefusedException e) {
                return e.refusal().code();
            } catch (FeignOutcomeUnknownException e) {
                return "unknown";
            }
        });
        ends.forEach((number, end) -> {
            String order = "order-" + number;
            Integer paid = ledger.payments().get(order);
            if (end.equals("unknown")) {
                assertThat(paid == null ? 1 : paid).as(order).isEqualTo(1);
            } else if (end.equals("storage-unavailable")) {
                assertThat(paid).as(order).isNull();
            } else {
                assertThat(end).endsWith(" for " + order);
                assertThat(paid).as(order).isEqualTo(1);
            }
        });
        assertThat(requests).as("Redis came back").hasValueGreaterThanOrEqualTo(50);
        assertThat(proxy.statusLines()).anyMatch(line -> line.contains(" 503"));
        assertThat(ends.values()).as("who could be helped was").anyMatch(end -> end.startsWith("receipt"));
    }
}
