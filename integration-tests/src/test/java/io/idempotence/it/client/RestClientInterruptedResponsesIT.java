package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.client.InterruptedResponsesIT.Cut;
import io.idempotence.it.client.InterruptedResponsesIT.Scenario;
import io.idempotence.it.wire.RawServer;
import io.idempotence.it.wire.SideBySide;
import io.idempotence.spring.client.IdempotentRestClient;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.web.client.RestClient;

/** The responses of {@link InterruptedResponsesIT}, cut at each of their lines and at each of their bytes, over Spring's {@code RestClient}. */
class RestClientInterruptedResponsesIT {
    private static final String REPLAYED =
            "HTTP/1.1 201 Created\r\nIdempotent-Replayed: true\r\n" + "Content-Length: 6\r\n\r\nstored";

    /** With the header that matters behind the one that frames. */
    private static final String IN_PROGRESS_IN_CHUNKS = "HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n"
            + "Retry-After-Ms: 1\r\nIdempotency-Refusal: in-progress\r\n\r\n2\r\nno\r\n0\r\n\r\n";

    private static final Scenario REFUSED =
            new Scenario("refusal in chunks while in doubt", 1, IN_PROGRESS_IN_CHUNKS, REPLAYED, end -> true);

    private record Case(RestClientFactory factory, Scenario scenario, Cut cut) {
        static Stream<Case> all(Cut cut) {
            return Stream.of(RestClientFactory.values())
                    .flatMap(factory -> Stream.concat(InterruptedResponsesIT.SCENARIOS.stream(), Stream.of(REFUSED))
                            .map(scenario -> new Case(factory, scenario, cut)));
        }

        String result() {
            return scenario == REFUSED ? "201 stored" : scenario.result();
        }

        @Override
        public String toString() {
            return factory + ", " + scenario;
        }
    }

    @TestFactory
    Stream<DynamicTest> responseThatBreaksOffAtALineIsNeverTheWrongEnd() {
        return SideBySide.test(Case.all(Cut.AT_EACH_LINE), RestClientInterruptedResponsesIT::assertNeverTheWrongEnd);
    }

    @TestFactory
    @Tag("all")
    Stream<DynamicTest> responseThatBreaksOffAnywhereIsNeverTheWrongEnd() {
        return SideBySide.test(Case.all(Cut.ANYWHERE), RestClientInterruptedResponsesIT::assertNeverTheWrongEnd);
    }

    private static void assertNeverTheWrongEnd(Case one) {
        String broken = one.scenario.broken();
        AtomicInteger length = new AtomicInteger();
        AtomicInteger requests = new AtomicInteger();
        List<String> wrong = new ArrayList<>();
        RestClient client = IdempotentRestClient.install(
                        RestClient.builder(), InterruptedResponsesIT.config(Duration.ofSeconds(20)))
                .requestFactory(one.factory.create())
                .build();
        try (RawServer server = RawServer.start((request, socket) -> InterruptedResponsesIT.write(
                socket, one.scenario.response(requests.incrementAndGet(), length.get())))) {
            for (int cut : one.cut.of(broken).toArray()) {
                length.set(cut);
                requests.set(0);
                Object end = InterruptedResponsesIT.end(() -> client.post()
                        .uri(server.url() + "/orders")
                        .body("x")
                        .exchange((request, response) -> text(response)));
                if (!end.equals(one.result())) {
                    wrong.add(broken.substring(0, cut).replace("\r\n", "|") + " -> " + end);
                }
            }
        }
        assertThat(wrong).isEmpty();
    }

    /** Not every factory decompresses. */
    private static String text(ClientHttpResponse response) throws IOException {
        try (InputStream in = "gzip".equals(response.getHeaders().getFirst("Content-Encoding"))
                ? new GZIPInputStream(response.getBody())
                : response.getBody()) {
            return response.getStatusCode().value() + " " + new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
