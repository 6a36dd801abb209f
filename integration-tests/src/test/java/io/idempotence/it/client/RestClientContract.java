package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;

import feign.BaseBuilder;
import feign.Feign;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.spring.client.IdempotentRestClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/** {@link ClientContract} over Spring's {@code RestClient}. Subclasses name the request factory. */
abstract class RestClientContract extends ClientContract {
    abstract ClientHttpRequestFactory factory(Duration connect, Duration read);

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder();
    }

    @Override
    ClientUnderTest client(IdempotenceClientConfig config, String url, Duration connect, Duration read) {
        RestClient client = IdempotentRestClient.install(RestClient.builder(), config)
                .requestFactory(factory(connect, read))
                .defaultRequest(request -> request.attribute(IdempotentRestClient.CLIENT, "orders"))
                .build();
        return body -> end(client, url, body);
    }

    private static End end(RestClient client, String url, String body) {
        try {
            return client.post()
                    .uri(url + "/orders")
                    .body(body)
                    .exchange((request, response) -> new End(
                            response.getStatusCode().value(),
                            new String(response.getBody().readAllBytes(), StandardCharsets.UTF_8),
                            null));
        } catch (RuntimeException e) {
            return End.thrown(e);
        }
    }

    @Override
    Class<? extends Throwable> failureToSend() {
        return ResourceAccessException.class;
    }

    @Override
    Result endOfAStoredError() {
        return REPLAYED;
    }
}
