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
import java.util.Optional;
import org.jspecify.annotations.Nullable;
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
        Request request = post(from, headers);
        Response response = redirecting(request, to);
        Redirect redirect = Redirect.of(request, response).orElseThrow();
        assertThat(redirect.dropsId()).isEqualTo(dropped);
        assertThat(redirect.request().headers().containsKey("idempotency-key")).isEqualTo(!dropped);
    }

    /** The request below went to an instance, under https. */
    @ParameterizedTest
    @CsvSource({
        "/v2?a=b, http://shop_a/v2?a=b",
        "https://10.0.0.1:8443/v2, http://shop_a/v2",
        "https://10.0.0.2:8443/v2, https://10.0.0.2:8443/v2",
        "http://10.0.0.1:8443/v2,",
    })
    void redirectOfAnInstanceIsTakenForOneOfTheService(String location, @Nullable String next) {
        Request asked = post("http://shop_a/orders", Map.of());
        Request sent = post("https://10.0.0.1:8443/orders", Map.of());
        assertThat(Redirect.of(asked, redirecting(sent, location))
                        .map(redirect -> redirect.request().url()))
                .isEqualTo(Optional.ofNullable(next));
    }

    /** A balancer that speaks http to its instances does not make the caller's https less secret, nor the other way round. */
    @ParameterizedTest
    @CsvSource({
        "https://shop/orders, http://10.0.0.1/orders, http://other/v2,",
        "http://shop/orders, https://10.0.0.1/orders, http://shop/v2,",
        "https://shop/orders, http://10.0.0.1/orders, http://10.0.0.1/v2, https://shop/v2",
        "http://shop/orders, http://10.0.0.1/orders, http://other/v2, http://other/v2",
    })
    void httpsIsNotLeft(String asked, String sent, String location, @Nullable String next) {
        assertThat(Redirect.of(post(asked, Map.of()), redirecting(post(sent, Map.of()), location))
                        .map(redirect -> redirect.request().url()))
                .isEqualTo(Optional.ofNullable(next));
    }

    private static Request post(String url, Map<String, Collection<String>> headers) {
        return Request.create(
                HttpMethod.POST, url, headers, new byte[0], StandardCharsets.UTF_8, new RequestTemplate());
    }

    private static Response redirecting(Request request, String location) {
        return Response.builder()
                .status(307)
                .headers(Map.of("Location", List.of(location)))
                .request(request)
                .build();
    }
}
