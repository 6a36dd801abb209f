package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.spi.ILoggingEvent;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** The log of an outage, by a clock that is moved. */
class OutageLogTest {
    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 10);
    private final CapturedLog log = CapturedLog.of(OutageLogTest.class);
    private final OutageLog outage = new OutageLog(LoggerFactory.getLogger(OutageLogTest.class), now::get);

    @AfterEach
    void close() {
        log.close();
    }

    private void pass(Duration duration) {
        now.addAndGet(duration.toNanos());
    }

    private void fail(int times) {
        for (int i = 0; i < times; i++) {
            outage.failed("an attempt was refused", new IllegalStateException("the storage does not respond"));
        }
    }

    private List<String> lines() {
        return log.warnings().stream().map(ILoggingEvent::getFormattedMessage).toList();
    }

    @Test
    void anOutageIsLoggedOnceThenOncePerMinuteAndAtItsEnd() {
        fail(100);
        assertThat(lines()).hasSize(1);
        pass(Duration.ofSeconds(60));
        fail(50);
        assertThat(lines()).hasSize(2);
        assertThat(lines().get(1)).contains("100 failures since the last report", "101 in 60.0 s");
        assertThat(log.warnings().get(1).getThrowableProxy()).isNull();
        pass(Duration.ofSeconds(59));
        fail(50);
        assertThat(lines()).hasSize(2);
        pass(Duration.ofSeconds(2));
        outage.responded();
        outage.responded();
        assertThat(lines()).hasSize(3);
        assertThat(lines().get(2)).isEqualTo("the storage responds again, after 200 failures in 119.0 s");
        assertThat(outage.isFailing()).isFalse();
    }

    @Test
    void aFailureThatIsReportedLateMakesNoOutageShorter() {
        fail(1);
        pass(Duration.ofSeconds(2));
        fail(1);
        pass(Duration.ofSeconds(-3));
        fail(1);
        pass(Duration.ofSeconds(5));
        outage.responded();
        assertThat(lines().get(1)).isEqualTo("the storage responds again, after 3 failures in 2.0 s");
    }

    @Test
    void aReplyAmongFailuresIsNoEnd() {
        fail(1);
        outage.responded();
        pass(Duration.ofMillis(900));
        fail(1);
        pass(Duration.ofMillis(900));
        outage.responded();
        assertThat(lines()).hasSize(1);
        assertThat(outage.isFailing()).isTrue();
    }

    @Test
    void anOutageSoonAfterAnotherIsLoggedAtItsBeginningAndAtItsEndToo() {
        fail(1);
        pass(Duration.ofSeconds(1));
        outage.responded();
        pass(Duration.ofSeconds(5));
        fail(100);
        pass(Duration.ofSeconds(50));
        outage.responded();
        assertThat(lines()).hasSize(4);
        assertThat(lines().get(2)).startsWith("the storage fails");
        assertThat(lines().get(3)).startsWith("the storage responds again, after 100 failures");
    }

    @Test
    void outagesThatComeAndGoDoNotFillTheLog() {
        for (int i = 0; i < 30; i++) {
            fail(1);
            pass(Duration.ofSeconds(1));
            outage.responded();
        }
        // Three with their beginning and end; the others are counted.
        assertThat(lines()).hasSize(6);
        pass(Duration.ofSeconds(31));
        fail(1);
        assertThat(lines()).hasSize(7);
        assertThat(lines().get(6)).contains("after 27 failures in short outages");
    }
}
