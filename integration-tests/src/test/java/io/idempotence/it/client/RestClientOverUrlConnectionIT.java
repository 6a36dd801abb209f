package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.wire.RawServer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;

/** {@code RestClient} over HttpURLConnection. */
class RestClientOverUrlConnectionIT extends RestClientContract {
    @Override
    ClientHttpRequestFactory factory(Duration connect, Duration read) {
        SimpleClientHttpRequestFactory factory = new SimpleClientHttpRequestFactory();
        factory.setConnectTimeout(connect);
        factory.setReadTimeout(read);
        return factory;
    }

    /** Spring has it stream the body, so the JDK has none to repeat. */
    @Override
    Follows follows() {
        return Follows.NOT;
    }

    /** The JDK drops the body of such a response if that of the request was streamed. It was taken for a cut one. */
    @ParameterizedTest
    @CsvSource({
        "401, Content-Length: 6",
        "401, Connection: close",
        "407, Content-Length: 6",
        "407, Connection: close",
    })
    void responseOfALoginWhoseBodyTheJdkDropsIsTheResponse(int status, String header) {
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server = RawServer.start((request, socket) -> {
            requests.incrementAndGet();
            write(socket, "HTTP/1.1 " + status + " Login\r\n" + header + "\r\n\r\nlog in");
        })) {
            assertStatus(client(fast(), server.url()).order(), status);
        }
        assertThat(requests).hasValue(1);
        assertEnd(FAILED, 1);
    }
}
