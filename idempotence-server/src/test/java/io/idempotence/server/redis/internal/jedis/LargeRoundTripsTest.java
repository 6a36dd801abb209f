package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.SocketTimeoutException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Tests of which of two threads decides about the connection of a large round trip: its own, or that of another caller. */
@Tag("jedis")
class LargeRoundTripsTest {
    private static final Duration ELAPSED = Duration.ofNanos(-1);

    private final LargeRoundTrips trips = new LargeRoundTrips();
    private final ScriptedRedis redis = new ScriptedRedis((command, out) -> {});
    private Connection connection;

    @BeforeEach
    void connect() {
        connection = new Connection(redis.address());
        connection.connect();
    }

    @AfterEach
    void close() throws Exception {
        connection.close();
        redis.close();
    }

    /** The connection is about to be closed, so it must not go back to the pool. */
    @Test
    void roundTripFailsThatSucceedsWhileItsConnectionIsBeingClosed() {
        assertThatThrownBy(() -> trips.run(connection, ELAPSED, () -> {
                    trips.closeOverdue();
                    return "replies";
                }))
                .isInstanceOf(JedisConnectionException.class)
                .hasRootCauseInstanceOf(SocketTimeoutException.class);
    }

    @Test
    void failureOfAConnectionThatWasClosedIsATimeout() {
        JedisConnectionException closed = new JedisConnectionException("closed");
        assertThatThrownBy(() -> trips.run(connection, ELAPSED, () -> {
                    trips.closeOverdue();
                    throw closed;
                }))
                .hasRootCauseInstanceOf(SocketTimeoutException.class)
                .rootCause()
                .hasSuppressedException(closed);
    }

    @Test
    void overdueOneIsClosedBehindOneThatIsNot() {
        assertThatThrownBy(() -> trips.run(
                        new Connection(redis.address()),
                        Duration.ofDays(1),
                        () -> trips.run(connection, ELAPSED, () -> {
                            trips.closeOverdue();
                            return "replies";
                        })))
                .hasRootCauseInstanceOf(SocketTimeoutException.class);
    }

    @Test
    void roundTripInTimeKeepsItsConnection() {
        String replies = trips.run(connection, Duration.ofDays(1), () -> {
            trips.closeOverdue();
            return "replies";
        });
        assertThat(replies).isEqualTo("replies");
        assertThat(connection.isConnected()).isTrue();
        assertThat(connection.isBroken()).isFalse();
    }
}
