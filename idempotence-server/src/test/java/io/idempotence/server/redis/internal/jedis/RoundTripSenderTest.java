package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Tests of how long a round trip may take. */
@Tag("jedis")
class RoundTripSenderTest {
    private static final Duration LONGEST_REPLY = Duration.ofSeconds(1);

    /** The replies to the given number of calls, each of which comes late to this process. */
    private static List<List<Object>> repliesThatComeAfter(Duration late, int calls) throws Exception {
        AtomicLong now = new AtomicLong();
        RoundTripSender sender = new RoundTripSender(LONGEST_REPLY, null, new LargeRoundTrips(), () -> {}, now::get);
        try (ScriptedRedis redis =
                        new ScriptedRedis((command, out) -> ScriptedRedis.write(out, ScriptedRedis.usual(command)));
                Connection connection =
                        new Connection(
                                redis.address(),
                                DefaultJedisClientConfig.builder()
                                        .timeoutMillis(20_000)
                                        .build()) {
                            @Override
                            public Object getOne() {
                                now.addAndGet(late.toNanos());
                                return super.getOne();
                            }
                        }) {
            connection.connect();
            return sender.exchange(
                    connection,
                    List.of(Stream.generate(() -> QueuedCalls.find("key"))
                            .limit(calls)
                            .toList()));
        }
    }

    /** The driver would have ended a wait for the server. So the process was paused, and the replies are here by now. */
    @Test
    void aPauseOfThisProcessIsNoSlowReply() throws Exception {
        assertThat(repliesThatComeAfter(LONGEST_REPLY.multipliedBy(3), 1).get(0))
                .hasSize(1);
    }

    @Test
    void repliesThatAreEachInTimeMayTogetherBeTooLate() {
        assertThatThrownBy(() -> repliesThatComeAfter(LONGEST_REPLY.dividedBy(2), 10))
                .isInstanceOf(JedisConnectionException.class)
                .hasRootCauseInstanceOf(SocketTimeoutException.class);
    }
}
