package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Request;
import feign.Request.HttpMethod;
import feign.RequestTemplate;
import feign.Response;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RedirectTest {
    /** Names with an underscore are usual between containers, and no host to java.net.URI. */
    @ParameterizedTest
    @CsvSource({
        "http://shop:80/orders, HTTP://SHOP/v2, false",
        "http://shop/orders, http://shop:8080/v2, true",
        "http://shop_a/orders, http://shop/v2, true"
    })
    void idIsDroppedWhereTheOriginIsAnother(String from, String to, boolean dropped) {
        Map<String, Collection<String>> headers = Map.of("idempotency-key", List.of("a"));
        Request request = Request.create(
                HttpMethod.POST, from, headers, new byte[0], StandardCharsets.UTF_8, new RequestTemplate());
        Response response = Response.builder()
                .status(307)
                .headers(Map.of("Location", List.of(to)))
                .request(request)
                .build();
        Redirect redirect = Redirect.of(request, response).orElseThrow();
        assertThat(redirect.dropsId()).isEqualTo(dropped);
        assertThat(redirect.request().headers().containsKey("idempotency-key")).isEqualTo(!dropped);
    }
}
