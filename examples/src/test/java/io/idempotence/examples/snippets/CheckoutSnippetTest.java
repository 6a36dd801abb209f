package io.idempotence.examples.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.Request;
import feign.Response;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.examples.payments.api.PaymentOrder;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import org.junit.jupiter.api.Test;

/** The messages that the user sees. */
class CheckoutSnippetTest {
    private static final PaymentOrder ORDER = new PaymentOrder(7, 100);
    private static final IdempotenceId FORM = IdempotenceId.of("form-7");
    private static final int LOST = 0;

    private final Queue<Reply> responses = new ArrayDeque<>();
    private final List<String> ids = new ArrayList<>();
    private final CheckoutSnippet checkout = new CheckoutSnippet(IdempotentFeign.install(
                    Feign.builder()
                            .client(this::respond)
                            .encoder(new JacksonEncoder())
                            .decoder(new JacksonDecoder()),
                    IdempotenceClientConfig.builder().maxAttempts(1).build())
            .target(CheckoutSnippet.Payments.class, "https://payments.example"));

    private record Reply(int status, String body, Map<String, Collection<String>> headers) {}

    private Response respond(Request request, Request.Options options) throws IOException {
        ids.addAll(request.headers().getOrDefault("Idempotency-Key", List.of()));
        Reply response = responses.remove();
        if (response.status == LOST) {
            throw new SocketTimeoutException("read timed out");
        }
        return Response.builder()
                .status(response.status)
                .headers(response.headers)
                .body(response.body, StandardCharsets.UTF_8)
                .request(request)
                .build();
    }

    private void responds(int status, String body) {
        responses.add(new Reply(status, body, Map.of("Content-Length", List.of("" + body.length()))));
    }

    private void refuses(String refusal, int status) {
        responses.add(
                new Reply(status, "", Map.of("Content-Length", List.of("0"), "Idempotency-Refusal", List.of(refusal))));
    }

    @Test
    void lostResponseLeavesThePaymentUnknownUntilOneIsFound() {
        responds(LOST, "");
        assertThat(checkout.pay(ORDER, FORM)).startsWith("We do not know yet");
        responds(200, "[]");
        assertThat(checkout.look(ORDER)).startsWith("We still do not know");
        responds(200, "[{\"number\": 1, \"order\": 7}]");
        assertThat(checkout.look(ORDER)).isEqualTo("Paid: payment 1");
    }

    @Test
    void secondClickIsTheSameCallAndStaysUnknownWhateverALoginReturns() {
        responds(LOST, "");
        checkout.pay(ORDER, FORM);
        responds(401, "");
        assertThat(checkout.pay(ORDER, FORM)).startsWith("We still do not know");
        responds(503, "");
        assertThat(checkout.sendAgain(ORDER)).startsWith("We still do not know");
        responds(201, "{\"number\": 1, \"order\": 7}");
        assertThat(checkout.sendAgain(ORDER)).isEqualTo("Paid: payment 1");
        assertThat(new HashSet<>(ids)).containsExactly("\"form-7\"");
        assertThat(ids).hasSize(4);
    }

    @Test
    void refusedClickIsAskedForAgainWithItsForm() {
        refuses("key-invalid", 400);
        responds(200, "[]");
        assertThat(checkout.pay(ORDER, FORM)).contains("submit the same form again");
        responds(200, "[]");
        assertThat(checkout.sendAgain(ORDER)).contains("submit the same form again");
        responds(201, "{\"number\": 1, \"order\": 7}");
        assertThat(checkout.pay(ORDER, FORM)).isEqualTo("Paid: payment 1");
    }

    @Test
    void providersOwnNoIsReported() {
        responds(422, "");
        assertThat(checkout.pay(ORDER, FORM)).isEqualTo("Your payment was declined.");
        responds(LOST, "");
        checkout.pay(ORDER, FORM);
        responds(422, "");
        assertThat(checkout.sendAgain(ORDER)).isEqualTo("Your payment was declined.");
    }
}
