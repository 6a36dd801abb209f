package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import java.net.CookieManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Forms with a token that cannot be protected. They do not run, because a token promises one run. No other request is affected. */
@ExtendWith(OutputCaptureExtension.class)
class FormUnprotectedTest {
    private static final Pattern FIELD = Pattern.compile("name=\"([_a-z]+)\"[^>]*value=\"([^\"]*)\"");
    private static final Pattern FIELD_BACKWARDS = Pattern.compile("value=\"([^\"]*)\"[^>]*name=\"([_a-z]+)\"");

    private final HttpClient browser =
            HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    private static ConfigurableApplicationContext started(Class<?> more, String... properties) {
        return FormApplication.builder().sources(more).properties(properties).run();
    }

    private HttpResponse<String> send(
            ConfigurableApplicationContext application, String path, HttpRequest.Builder request) throws Exception {
        return browser.send(
                request.uri(URI.create(FormApplication.site(application) + path))
                        .header("Accept", "text/html")
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    /** The first form of the page, filled in. */
    private String opened(ConfigurableApplicationContext application) throws Exception {
        String page = send(application, "/pay", HttpRequest.newBuilder()).body();
        return "amount=10&_csrf=" + field(page, "_csrf") + "&_idempotence=" + field(page, "_idempotence");
    }

    private static String field(String page, String name) {
        for (Matcher field = FIELD.matcher(page); field.find(); ) {
            if (field.group(1).equals(name)) {
                return URLEncoder.encode(field.group(2), StandardCharsets.UTF_8);
            }
        }
        for (Matcher field = FIELD_BACKWARDS.matcher(page); field.find(); ) {
            if (field.group(2).equals(name)) {
                return URLEncoder.encode(field.group(1), StandardCharsets.UTF_8);
            }
        }
        throw new AssertionError("no field " + name + " in " + page);
    }

    private HttpResponse<String> submit(ConfigurableApplicationContext application, String form) throws Exception {
        return send(
                application,
                "/pay",
                HttpRequest.newBuilder()
                        .header("Content-Type", "application/x-www-form-urlencoded")
                        .POST(HttpRequest.BodyPublishers.ofString(form)));
    }

    @Configuration(proxyBeanMethods = false)
    static class Nothing {}

    @Test
    void aFormOnAPathThatNoFilterCoversDoesNotRun(CapturedOutput output) throws Exception {
        try (ConfigurableApplicationContext application = started(Nothing.class, "idempotence.server.paths=/api/*")) {
            HttpResponse<String> refused = submit(application, opened(application));

            assertThat(refused.statusCode()).isEqualTo(500);
            assertThat(refused.body()).contains("<h1>This form cannot be processed</h1>", "Nothing was done");
            assertThat(application.getBean(FormApplication.Shop.class).booked).isEmpty();
            assertThat(output).contains("ERROR", "posted to /pay", "idempotence.server.paths");
        }
    }

    @Test
    void aFormThatIsNotOfABrowserKeepsItsBody() throws Exception {
        try (ConfigurableApplicationContext application = started(Nothing.class)) {
            HttpRequest.Builder signed = HttpRequest.newBuilder()
                    .header("Content-Type", "application/x-www-form-urlencoded")
                    .POST(HttpRequest.BodyPublishers.ofString("amount=10"));

            assertThat(send(application, "/webhook", signed).body()).isEqualTo("amount=10");
        }
    }

    /** Its session cookie may be gone, but the form is still open, and a double click would run twice. */
    @Test
    void aBrowserWithoutASessionGetsAPageAboutTheExpiredForm() throws Exception {
        try (ConfigurableApplicationContext application = started(Nothing.class)) {
            String form = opened(application);
            HttpClient forgetful = HttpClient.newHttpClient();
            HttpResponse<String> refused = forgetful.send(
                    HttpRequest.newBuilder(URI.create("http://localhost:"
                                    + application.getEnvironment().getProperty("local.server.port") + "/webhook"))
                            .header("Content-Type", "application/x-www-form-urlencoded")
                            .header("Accept", "text/html")
                            .header("Origin", "null")
                            .POST(HttpRequest.BodyPublishers.ofString(form))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());

            assertThat(refused.statusCode()).isEqualTo(403);
            assertThat(refused.body()).contains("<h1>This form is no longer valid</h1>");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnFilter {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> ownFilter(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> registration = new FilterRegistrationBean<>(
                    IdempotenceFilter.builder(idempotence).keyOptional().build());
            registration.setOrder(5);
            return registration;
        }
    }

    @Test
    void aDoubleClickRunsOnceBehindAFilterOfTheApplication() throws Exception {
        try (ConfigurableApplicationContext application = started(OwnFilter.class)) {
            String form = opened(application);

            HttpResponse<String> first = submit(application, form);
            HttpResponse<String> second = submit(application, form);

            assertThat(first.statusCode()).isEqualTo(302);
            assertThat(second.headers().firstValue("Idempotent-Replayed")).hasValue("true");
            assertThat(application.getBean(FormApplication.Shop.class).booked).containsExactly("10");
        }
    }
}
