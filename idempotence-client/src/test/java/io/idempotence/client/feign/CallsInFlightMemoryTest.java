package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.Request;
import io.idempotence.client.feign.TestServer.Reply;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.Test;

/** The memory of the calls in flight: calls that have ended are no longer in it. */
class CallsInFlightMemoryTest extends FeignTestBase {
    @Test
    void endedCallsAreForgotten() {
        Installation installation = Installation.of(fast().build(), feign.Feign.builder());
        Orders orders = target(Feign.builder()
                .requestInterceptor(IdempotentFeign.interceptor(installation))
                .addCapability(new IdempotentFeign.Installed(installation)));
        server.respond(Reply.status(503));
        for (int i = 0; i < 500; i++) {
            orders.create("x" + i);
            orders.tick();
        }
        assertFallsBelow(10, installation.calls()::size);
        assertThat(installation.calls().attemptOf((Request) null)).isNull();
    }

    static void assertFallsBelow(int limit, IntSupplier size) {
        long giveUpAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (size.getAsInt() >= limit && System.nanoTime() < giveUpAt) {
            System.gc();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        assertThat(size.getAsInt()).isLessThan(limit);
    }
}
