package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Client;
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
import org.junit.jupiter.api.Test;
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
    void originIsThatOfSchemeHostAndPort(String from, String to, boolean leaves) {
        Map<String, Collection<String>> headers = Map.of("idempotency-key", List.of("a"));
        Request request = post(from, headers);
        Redirect redirect = redirect(request, redirecting(request, to)).orElseThrow();
        assertThat(redirect.staysAtOrigin()).isEqualTo(!leaves);
        assertThat(redirect.request().headers()).containsKey("idempotency-key");
    }

    /** The request below went to an instance, under https. */
    @ParameterizedTest
    @CsvSource({
        "/v2?a=b, http://shop_a/v2?a=b",
        "https://10.0.0.1:8443/v2, http://shop_a/v2",
        "https://10.0.0.2:8443/v2, https://10.0.0.2:8443/v2",
        "http://10.0.0.1:8443/v2, http://10.0.0.1:8443/v2",
    })
    void redirectOfAnInstanceIsTakenForOneOfTheService(String location, @Nullable String next) {
        Request asked = post("http://shop_a/orders", Map.of());
        Request sent = post("https://10.0.0.1:8443/orders", Map.of());
        assertThat(redirect(asked, redirecting(sent, location))
                        .map(redirect -> redirect.request().url()))
                .isEqualTo(Optional.ofNullable(next));
    }

    /** A balancer may speak another scheme to its instances than the caller to the service. */
    @ParameterizedTest
    @CsvSource({
        "https://shop/orders, http://10.0.0.1/orders, http://other/v2, false",
        "https://shop/orders, http://10.0.0.1/orders, http://10.0.0.1/v2, true",
        "http://shop/orders, https://10.0.0.1/orders, http://shop/v2, true",
        "http://shop/orders, http://10.0.0.1/orders, http://other/v2, false",
        "http://shop/orders, http://shop/orders, https://shop/orders, false",
        "https://shop/orders, https://shop/orders, http://shop/orders, false",
    })
    void originIsThatOfTheServiceOrOfTheInstanceThatResponds(
            String asked, String sent, String location, boolean stays) {
        Response response = redirecting(post(sent, Map.of()), location);
        assertThat(redirect(post(asked, Map.of()), response).orElseThrow().staysAtOrigin())
                .isEqualTo(stays);
    }

    @ParameterizedTest
    @CsvSource({"307, POST", "308, POST", "301, GET", "302, GET", "303, GET"})
    void onlyARedirectOfTheSameRequestKeepsTheId(int status, HttpMethod next) {
        Map<String, Collection<String>> headers =
                Map.of("Idempotency-Key", List.of("a"), "Idempotency-Attempt", List.of("1"), "X-Mine", List.of("b"));
        Request request = post("http://shop/a", headers);
        Response response =
                redirecting(request, "/b").toBuilder().status(status).build();
        Request redirected = redirect(request, response).orElseThrow().request();
        assertThat(redirected.httpMethod()).isEqualTo(next);
        assertThat(redirected.headers().containsKey("Idempotency-Key")).isEqualTo(next == HttpMethod.POST);
        assertThat(redirected.headers().containsKey("Idempotency-Attempt")).isEqualTo(next == HttpMethod.POST);
        assertThat(redirected.headers()).containsKey("X-Mine");
    }

    /** HttpURLConnection cannot repeat a body that it streamed, and says so; without one it makes a GET of a POST and of nothing else. */
    @ParameterizedTest
    @CsvSource({
        "POST, x, true, 302,",
        "PUT, x, true, 303,",
        "POST, x, false, 302, GET",
        "POST, '', true, 301, GET",
        "PUT, '', true, 303, PUT",
        "POST, x, true, 307, POST"
    })
    void redirectIsFollowedAsTheDefaultClientDoes(
            HttpMethod method, String body, boolean streams, int status, @Nullable HttpMethod next) {
        Request request = Request.create(
                method,
                "http://shop/a",
                Map.of(),
                body.getBytes(StandardCharsets.UTF_8),
                StandardCharsets.UTF_8,
                new RequestTemplate());
        Response response =
                redirecting(request, "/b").toBuilder().status(status).build();
        assertThat(Redirect.of(request, response, HttpClientTraits.of(new Client.Default(null, null, streams)))
                        .map(redirect -> redirect.request().httpMethod()))
                .isEqualTo(Optional.ofNullable(next));
    }

    /** RFC 3986, section 5.4, and what HTTP adds. */
    @ParameterizedTest
    @CsvSource({
        "http://shop/a/orders?x=1, ?step=2, http://shop/a/orders?step=2",
        "http://shop/a/orders?x=1, '', http://shop/a/orders?x=1",
        "http://shop/a/orders, '#top', http://shop/a/orders",
        "http://shop/a/orders, 7, http://shop/a/7",
        "http://shop/a/orders, ./7, http://shop/a/7",
        "http://shop/a/b/orders, ../7/., http://shop/a/7/",
        "http://shop/a, ../../7, http://shop/7",
        "http://shop/a/orders, /b//c/../d?y, http://shop/b//d?y",
        "http://shop, orders/7, http://shop/orders/7",
        "http://shop, ?step=2, http://shop/?step=2",
        "http://shop?x=1, orders, http://shop/orders",
        "http://shop/a, //shop/b, http://shop/b",
        "http://shop/a, //other, http://other/",
        "http://shop/a, http://other/b/../c, http://other/c",
        "http://shop_a/orders, /v2, http://shop_a/v2",
        "http://shop_a:81/orders, v2, http://shop_a:81/v2",
        "http://shop/orders, http://shop_b/v2, http://shop_b/v2",
        "http://[::1]:80/a, b, http://[::1]:80/b",
        "http://shop/a, http://shop:x/b,",
        "http://shop/a, http://a@shop@other/b,",
        "http://shop/a, http://:80/b,",
        "http://shop/a, http:b,",
        "http://shop/a, orders:7,",
        "http://shop/a, b c,"
    })
    void locationIsReadFromTheAddressThatResponds(String base, String location, @Nullable String next) {
        Request request = post(base, Map.of());
        assertThat(redirect(request, redirecting(request, location))
                        .map(redirect -> redirect.request().url()))
                .isEqualTo(Optional.ofNullable(next));
    }

    @ParameterizedTest
    @CsvSource({
        "http://shop/a, http://SHOP:80/b, false",
        "http://shop/a, http://me:secret@shop/b, false",
        "http://shop/a, http://shop:80@other/b, true",
        "http://[::1]/a, http://[::1]:80/b, false",
        "http://shop_a/a, http://SHOP_A:80/b, false",
        "http://shop_a/a, http://shop_b/b, true",
        "http://shop, shop/b, false"
    })
    void originIsThatOfTheTextThatIsSent(String from, String to, boolean leaves) {
        Request request = post(from, Map.of("Idempotency-Key", List.of("a")));
        assertThat(redirect(request, redirecting(request, to)).orElseThrow().staysAtOrigin())
                .isEqualTo(!leaves);
    }

    /** Feign's default client looks for Content-Encoding, and means any spelling. */
    @Test
    void headersKeepTheirNamesInAnySpelling() {
        Request request = post("http://shop/a", Map.of("content-encoding", List.of("gzip")));
        Request next =
                redirect(request, redirecting(request, "/b")).orElseThrow().request();
        assertThat(next.headers().get("Content-Encoding")).containsExactly("gzip");
    }

    /** Of requests without a body, which HttpURLConnection does not follow with one that was streamed. */
    private static Optional<Redirect> redirect(Request request, Response response) {
        return Redirect.of(request, response, HttpClientTraits.of(new Client.Default(null, null)));
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
