package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class AtMostOncePerSecondTest {
    // Nanoseconds overflow, as System.nanoTime may.
    private final AtomicLong time = new AtomicLong(Long.MAX_VALUE - 10);
    private final AtomicInteger runs = new AtomicInteger();
    private final Runnable action = new AtMostOncePerSecond(runs::incrementAndGet, time::get);

    @Test
    void runsAtOnceAndAgainOnlyAfterASecond() {
        assertThat(runsAfter(0)).isEqualTo(1);
        assertThat(runsAfter(0)).isEqualTo(1);
        assertThat(runsAfter(999_999_999)).isEqualTo(1);
        assertThat(runsAfter(1)).isEqualTo(2);
        assertThat(runsAfter(500_000_000)).isEqualTo(2);
        assertThat(runsAfter(500_000_000)).isEqualTo(3);
    }

    private int runsAfter(long nanos) {
        time.addAndGet(nanos);
        action.run();
        return runs.get();
    }
}
