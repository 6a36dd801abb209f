package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.CookieManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.MessageSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.StaticMessageSource;

/** Requests that a browser does not send, or not on its own, in an application that requires IDs. */
class FormOverHttpTest {
    private static ConfigurableApplicationContext application;
    private static String site;
    private static FormApplication.Shop shop;

    private final HttpClient client =
            HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    /** As with spring.messages.use-code-as-default-message. */
    @Configuration(proxyBeanMethods = false)
    static class CodesAsMessages {
        @Bean
        MessageSource messageSource() {
            StaticMessageSource messages = new StaticMessageSource();
            messages.setUseCodeAsDefaultMessage(true);
            return messages;
        }
    }

    @BeforeAll
    static void start() {
        application = FormApplication.builder()
                .sources(CodesAsMessages.class)
                .properties("idempotence.server.require-id=true")
                .run();
        site = FormApplication.site(application);
        shop = application.getBean(FormApplication.Shop.class);
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @BeforeEach
    void forget() {
        shop.booked.clear();
    }

    private HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create(site + path)).header("Accept", "text/html");
    }

    private HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private HttpResponse<String> post(HttpRequest.Builder request, String form) throws Exception {
        return send(request.header("Content-Type", "application/x-www-form-urlencoded")
                .POST(HttpRequest.BodyPublishers.ofString(form)));
    }

    /** Opens the form, and returns what Spring Security wants to see of it. */
    private String opened() throws Exception {
        return "_csrf=" + field(send(to("/pay").GET()).body(), "_csrf");
    }

    private static String field(String page, String name) {
        Matcher field = Pattern.compile(
                        "name=\"" + name + "\"[^>]*value=\"([^\"]*)\"|value=\"([^\"]*)\"[^>]*name=\"" + name + "\"")
                .matcher(page);
        assertThat(field.find()).as(page).isTrue();
        return URLEncoder.encode(field.group(1) == null ? field.group(2) : field.group(1), StandardCharsets.UTF_8);
    }

    @Test
    void aPersonGetsAPageAboutTheMissingFieldAndAProgramAProblem() throws Exception {
        String csrf = opened();

        HttpResponse<String> page = post(to("/pay"), csrf + "&amount=10");
        HttpResponse<String> problem = post(to("/pay").setHeader("Accept", "application/json"), csrf + "&amount=10");

        assertThat(page.statusCode()).isEqualTo(400);
        assertThat(page.headers().firstValue("Content-Type")).hasValue("text/html;charset=UTF-8");
        assertThat(page.headers().firstValue("Idempotency-Refusal")).hasValue("key-missing");
        assertThat(page.body()).contains("<h1>This form cannot be processed</h1>");
        assertThat(problem.headers().firstValue("Content-Type")).hasValue("application/problem+json");
        assertThat(shop.booked).isEmpty();
    }

    @Test
    void aFormWithAHeaderOfItsOwnNeedsNoToken() throws Exception {
        HttpResponse<String> paid = post(to("/pay").header("Idempotency-Key", "order-1"), opened() + "&amount=10");

        assertThat(paid.statusCode()).isEqualTo(302);
        assertThat(shop.booked).containsExactly("10");
    }

    @Test
    void aReplayIsTheSameRedirect() throws Exception {
        String page = send(to("/pay").GET()).body();
        String form = "_csrf=" + field(page, "_csrf") + "&_idempotence=" + field(page, "_idempotence") + "&amount=10";

        HttpResponse<String> first = post(to("/pay"), form);
        HttpResponse<String> second = post(to("/pay"), form);

        assertThat(second.statusCode()).isEqualTo(first.statusCode()).isEqualTo(302);
        assertThat(second.headers().firstValue("Location"))
                .isEqualTo(first.headers().firstValue("Location"));
        assertThat(second.headers().firstValue("Idempotent-Replayed")).hasValue("true");
        assertThat(shop.booked).hasSize(1);
    }

    @Test
    void twoTokensInOneFormAreRefused() throws Exception {
        String page = send(to("/pay").GET()).body();
        String token = field(page, "_idempotence");

        HttpResponse<String> refused = post(
                to("/pay"),
                "_csrf=" + field(page, "_csrf") + "&_idempotence=" + token + "&_idempotence=" + token + "&amount=10");

        assertThat(refused.statusCode()).isEqualTo(403);
        assertThat(shop.booked).isEmpty();
    }

    @Test
    void theLinkBackStaysOnThisServer() throws Exception {
        String form = opened() + "&_idempotence=forged&amount=10";

        assertThat(post(to("/pay").header("Referer", site + "/pay?to=%22%3E"), form)
                        .body())
                .contains("<a href=\"/pay?to=%22%3E\">");
        assertThat(post(to("/pay").header("Referer", site + "//evil.example/pay"), form)
                        .body())
                .contains("<a href=\"/evil.example/pay\">");
        for (String elsewhere :
                new String[] {"https://evil.example/pay", "javascript:alert(1)", "\"><script>", "/pay"}) {
            assertThat(post(to("/pay").header("Referer", elsewhere), form).body())
                    .doesNotContain("<a ", "<script");
        }
    }
}
