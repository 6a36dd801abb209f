package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.IdempotenceRecord;
import java.net.CookieManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** The console of an application that is not at the root of its server. */
class ConsoleInContextPathTest {
    private static final Pattern FIELD =
            Pattern.compile("<input type=\"hidden\" name=\"([_a-z]+)\" value=\"([^\"]*)\"");

    private static final Pattern ACTION = Pattern.compile("<form method=\"post\" action=\"([^\"]*)\"");

    private final HttpClient client =
            HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    private HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void itWorksByThePathsInTheApplication() throws Exception {
        assertWorks("/bank", "/shop");
    }

    @ParameterizedTest
    @CsvSource({"/bank, ''", "'', /bank"})
    @Tag("all") // two starts; both paths at once are in every build
    void itWorksBehindAContextPathOrAServletPathAlone(String context, String servlet) throws Exception {
        assertWorks(context, servlet);
    }

    private void assertWorks(String context, String servlet) throws Exception {
        try (ConfigurableApplicationContext application = new SpringApplicationBuilder(ConsoleApplication.class)
                .properties(
                        "server.port=0",
                        "server.address=localhost",
                        "server.servlet.context-path=" + context,
                        "spring.mvc.servlet.path=" + (servlet.isEmpty() ? "/" : servlet),
                        "spring.main.banner-mode=off",
                        "idempotence.console.enabled=true",
                        "idempotence.console.without-security=true",
                        "idempotence.console.writes=true",
                        // The form of the console needs no idempotence filter.
                        "idempotence.server.paths=" + servlet + "/payments",
                        "idempotence.console.questions[POST " + servlet + "/payments]=Does the bank know this payment?")
                .run()) {
            String site = "http://localhost:" + application.getEnvironment().getProperty("local.server.port") + context
                    + servlet;
            send(HttpRequest.newBuilder(URI.create(site + "/payments"))
                    .header("Idempotency-Key", "\"payment-1\"")
                    .POST(HttpRequest.BodyPublishers.noBody()));
            IdempotenceRecord record = application
                    .getBean(Idempotence.class)
                    .admin()
                    .list()
                    .toList()
                    .get(0);

            String page = send(HttpRequest.newBuilder(URI.create(site + "/idempotence?key="
                            + URLEncoder.encode(record.key().value(), StandardCharsets.UTF_8))))
                    .body();

            assertThat(page)
                    .contains("Does the bank know this payment?", "POST " + servlet + "/payments")
                    .contains("href=\"" + context + servlet + "/idempotence\"")
                    .doesNotContain("/bank" + servlet + "/payments");

            StringBuilder form = new StringBuilder("as=applied&checked=yes");
            FIELD.matcher(page)
                    .results()
                    .forEach(field -> form.append('&')
                            .append(field.group(1))
                            .append('=')
                            .append(URLEncoder.encode(field.group(2), StandardCharsets.UTF_8)));
            String action =
                    ACTION.matcher(page).results().findFirst().orElseThrow().group(1);
            HttpResponse<String> resolved =
                    send(HttpRequest.newBuilder(URI.create(site).resolve(action))
                            .header("Content-Type", "application/x-www-form-urlencoded")
                            .POST(HttpRequest.BodyPublishers.ofString(form.toString())));
            assertThat(resolved.statusCode()).as(form.toString()).isEqualTo(303);
            assertThat(resolved.headers().firstValue("Location"))
                    .hasValueSatisfying(to -> assertThat(to)
                            .startsWith(context + servlet + "/idempotence?")
                            .contains("result=done"));
        }
    }
}
