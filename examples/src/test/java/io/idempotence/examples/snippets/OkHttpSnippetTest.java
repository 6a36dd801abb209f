package io.idempotence.examples.snippets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Only a 2xx that was read to its end is a payment, and what is not at its end is asked for again under the same ID. */
class OkHttpSnippetTest {
    private static final String ORDER = "{\"order\": 7}";
    private static final String PAYMENT = "{\"number\": 1}";

    private final Queue<Reply> responses = new ConcurrentLinkedQueue<>();
    private final List<String> ids = new CopyOnWriteArrayList<>();
    private HttpServer provider;
    private OkHttpSnippet consumer;

    /** @param length that the head says; negative: there is no response at all */
    private record Reply(int status, String body, int length) {
        static final Reply LOST = new Reply(0, "", -1);
        static final Reply CUT = new Reply(200, PAYMENT, 1000);

        static Reply of(int status, String body) {
            return new Reply(status, body, body.length());
        }
    }

    @BeforeEach
    void starts() throws IOException {
        provider = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        provider.createContext("/", this::respond);
        provider.start();
        consumer = new OkHttpSnippet("http://127.0.0.1:" + provider.getAddress().getPort() + "/payments");
    }

    @AfterEach
    void stops() {
        provider.stop(0);
    }

    private void respond(HttpExchange exchange) throws IOException {
        try (exchange) {
            ids.add(exchange.getRequestHeaders().getFirst("Idempotency-Key"));
            exchange.getRequestBody().readAllBytes();
            Reply response = responses.remove();
            if (response.length >= 0) {
                // OkHttp sends again by itself what is lost on a connection that was kept.
                exchange.getResponseHeaders().set("Connection", "close");
                exchange.sendResponseHeaders(response.status, response.length);
                exchange.getResponseBody().write(response.body.getBytes(StandardCharsets.UTF_8));
                // Else, on JDK 25, the head of a response that is cut may not leave.
                exchange.getResponseBody().flush();
            }
        }
    }

    private void responds(Reply... next) {
        responses.addAll(List.of(next));
    }

    @Test
    void providersOwnNoIsNoPayment() throws IOException {
        responds(Reply.of(422, "no money"));
        consumer.pay(ORDER);
        assertThat(consumer.endOf(ORDER)).hasValue("declined: no money");
        assertThat(ids).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {401, 404, 503})
    void otherErrorIsNeitherAPaymentNorANo(int status) throws IOException {
        Reply error = Reply.of(status, "no payment");
        responds(error, error, error);
        assertThatThrownBy(() -> consumer.pay(ORDER)).isInstanceOf(IOException.class);
        assertThat(consumer.endOf(ORDER)).isEmpty();
        assertPaidUnderTheSameId();
    }

    @Test
    void interruptedBodyIsRequestedAgainUnderTheSameId() throws IOException {
        responds(Reply.CUT);
        assertThatThrownBy(() -> consumer.pay(ORDER))
                .isInstanceOf(IOException.class)
                .isNotInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(consumer.endOf(ORDER)).isEmpty();
        assertPaidUnderTheSameId();
    }

    @Test
    void lostResponseIsAskedForAgainUnderTheSameId() throws IOException {
        responds(Reply.LOST, Reply.LOST, Reply.LOST);
        assertThatThrownBy(() -> consumer.pay(ORDER)).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(consumer.endOf(ORDER)).isEmpty();
        assertPaidUnderTheSameId();
    }

    private void assertPaidUnderTheSameId() throws IOException {
        responses.clear();
        responds(Reply.of(201, PAYMENT));
        consumer.pay(ORDER);
        assertThat(consumer.endOf(ORDER)).hasValue("paid: " + PAYMENT);
        assertThat(ids).hasSizeGreaterThan(1).containsOnly(ids.get(0));
    }
}
