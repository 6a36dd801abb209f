package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.idempotence.ClosedPort;
import java.io.IOException;
import java.net.ConnectException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.URI;
import org.junit.jupiter.api.Test;

class IoFailuresTest {
    private static HttpURLConnection toNobody() throws IOException {
        return (HttpURLConnection) URI.create(ClosedPort.url()).toURL().openConnection();
    }

    @Test
    void requestWhoseConnectionIsRefusedIsNotSent() throws IOException {
        HttpURLConnection connection = toNobody();
        connection.setDoOutput(true);
        connection.setFixedLengthStreamingMode(1);
        assertThat(IoFailures.certainlyNotSent(
                        catchThrowableOfType(ConnectException.class, connection::getOutputStream)))
                .isTrue();
    }

    /** It was "not sent": HttpURLConnection connects again where the deadline has closed the connection over which it sent. */
    @Test
    void requestMayHaveBeenSentWhereHttpUrlConnectionConnectsToReadTheResponse() throws IOException {
        HttpURLConnection connection = toNobody();
        assertThat(IoFailures.certainlyNotSent(
                        catchThrowableOfType(ConnectException.class, connection::getInputStream)))
                .isFalse();
    }

    @Test
    void closedSocketShowsWhetherItWasConnected() throws IOException {
        try (Socket closed = new Socket()) {
            closed.close();
            SocketException unconnected =
                    catchThrowableOfType(SocketException.class, () -> closed.connect(toNobodyAddress()));
            assertThat(IoFailures.certainlyNotSent(unconnected)).isTrue();
        }
        assertThat(IoFailures.certainlyNotSent(new SocketException("Socket closed")))
                .isFalse();
        assertThat(IoFailures.certainlyNotSent(new SocketTimeoutException("Connect timed out")))
                .isFalse();
    }

    private static InetSocketAddress toNobodyAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
    }
}
