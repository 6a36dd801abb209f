package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import feign.Feign;
import feign.Headers;
import feign.RequestLine;
import feign.Target.HardCodedTarget;
import io.idempotence.Idempotent;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.server.redis.EmbeddedRedis;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Cases in which one half could take an outcome for certain that is not. Each was once a bug. */
class PairUncertainOutcomeIT extends PairTestBase {
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    private void provider() {
        startProvider(() -> redis.connect());
    }

    interface Puts {
        @Idempotent
        @RequestLine("PUT /payments")
        @Headers("Content-Type: text/plain")
        String put(String order);
    }

    @Test
    void keyReusedAfterALostResponseIsUnknownAndNotSafeForANewId() {
        provider();
        through((request, n) -> n == 1 ? RESPONSE_LOST : NONE);
        AtomicInteger iv = new AtomicInteger();
        Feign.Builder builder = IdempotentFeign.install(Feign.builder().client(okHttp()), fast().build())
                .requestInterceptor(template -> template.query("ts", Integer.toString(iv.incrementAndGet())));
        Payments payments = builder.target(new HardCodedTarget<>(Payments.class, "payments", proxy.url()));
        Throwable end = catchThrowable(() -> payments.pay("order-1"));
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(end).isInstanceOf(FeignOutcomeUnknownException.class);
    }

    @Test
    void putThatCarriesAnIdIsNotRunTwiceSilently() {
        provider();
        through((request, n) -> n == 1 ? RESPONSE_LOST : NONE);
        Puts puts = IdempotentFeign.install(Feign.builder().client(okHttp()), fast().build())
                .target(new HardCodedTarget<>(Puts.class, "payments", proxy.url()));
        assertThat(puts.put("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }
}
