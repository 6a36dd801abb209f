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
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.multipart.MaxUploadSizeExceededException;
import org.springframework.web.multipart.MultipartFile;

/**
 * Forms with a token that cannot be protected, and requests that resemble them. Such a form does not run, because a token promises one run.
 * The other requests work as without the starter: forms of other clients, uploads that the container does not parse, pages with a form that
 * Spring Security forwards to.
 */
@ExtendWith(OutputCaptureExtension.class)
class FormUnprotectedTest {
    private static final Pattern FIELD = Pattern.compile("name=\"([_a-z]+)\"[^>]*value=\"([^\"]*)\"");
    private static final Pattern FIELD_BACKWARDS = Pattern.compile("value=\"([^\"]*)\"[^>]*name=\"([_a-z]+)\"");

    private final HttpClient browser =
            HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    private static ConfigurableApplicationContext application;

    @Configuration(proxyBeanMethods = false)
    static class More {
        @Bean
        @Order(0)
        SecurityFilterChain files(HttpSecurity security) throws Exception {
            return security.securityMatcher("/files")
                    .csrf(csrf -> csrf.disable())
                    .build();
        }

        @Bean
        @Order(1)
        SecurityFilterChain withAPageForDenials(HttpSecurity security) throws Exception {
            return security.securityMatcher("/without-csrf", "/denied")
                    .exceptionHandling(denied -> denied.accessDeniedPage("/denied"))
                    .build();
        }

        @Controller
        static class Denials {
            @RequestMapping("/denied")
            String denied() {
                return "forms/pay";
            }
        }

        @RestController
        static class Uploads {
            @PostMapping("/files")
            String store(@RequestParam MultipartFile file) {
                return file.getSize() + " bytes";
            }
        }

        @RestControllerAdvice
        static class Errors {
            @ExceptionHandler(MaxUploadSizeExceededException.class)
            ResponseEntity<String> tooLarge() {
                return ResponseEntity.status(422).body("send less");
            }
        }
    }

    @BeforeAll
    static void start() {
        application = FormApplication.builder()
                .sources(More.class)
                .properties(
                        "idempotence.server.paths=/files,/webhook,/without-csrf",
                        "spring.servlet.multipart.max-file-size=1KB")
                .run();
    }

    @AfterAll
    static void stop() {
        application.close();
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

    @Test
    void aFormOnAPathThatNoFilterCoversDoesNotRun(CapturedOutput output) throws Exception {
        HttpResponse<String> refused = submit(application, opened(application));

        assertThat(refused.statusCode()).isEqualTo(500);
        assertThat(refused.body()).contains("<h1>This form cannot be processed</h1>", "Nothing was done");
        assertThat(application.getBean(FormApplication.Shop.class).booked).isEmpty();
        assertThat(output).contains("ERROR", "posted to /pay", "idempotence.server.paths");
    }

    @Test
    void aFormThatIsNotOfABrowserKeepsItsBody() throws Exception {
        HttpRequest.Builder signed = HttpRequest.newBuilder()
                .header("Content-Type", "application/x-www-form-urlencoded")
                .POST(HttpRequest.BodyPublishers.ofString("amount=10"));

        assertThat(send(application, "/webhook", signed).body()).isEqualTo("amount=10");
    }

    /** Its session cookie may be gone, but the form is still open, and a double click would run twice. */
    @Test
    void aBrowserWithoutASessionGetsAPageAboutTheExpiredForm() throws Exception {
        String form = opened(application);
        HttpResponse<String> refused = withoutASession("/webhook", "application/x-www-form-urlencoded", form);

        assertThat(refused.statusCode()).isEqualTo(403);
        assertThat(refused.body()).contains("<h1>This form is no longer valid</h1>");
    }

    private static HttpResponse<String> withoutASession(String path, String type, String body) throws Exception {
        return HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(FormApplication.site(application) + path))
                                .header("Content-Type", type)
                                .header("Accept", "text/html")
                                .header("Origin", "null")
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
    }

    /** The page is shown instead of what was asked for. */
    @Test
    void aPageThatSpringSecurityForwardsToMayHaveAForm() throws Exception {
        HttpResponse<String> denied = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(FormApplication.site(application) + "/without-csrf"))
                                .header("Accept", "text/html")
                                .POST(HttpRequest.BodyPublishers.noBody())
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(denied.statusCode()).isEqualTo(403);
        assertThat(denied.body()).contains("name=\"_idempotence\"");
    }

    private static HttpResponse<String> upload(String more, String file) throws Exception {
        String form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n" + file + "\r\n"
                + more + "--b--\r\n";
        return withoutASession("/files", "multipart/form-data; boundary=b", form);
    }

    @Test
    void aFileIsUploaded() throws Exception {
        assertThat(upload("", "abc").body()).isEqualTo("3 bytes");
    }

    /** Tomcat 11 throws it as soon as a parameter is read. */
    @Test
    void theApplicationRespondsToAFileThatIsTooLarge() throws Exception {
        HttpResponse<String> refused = upload("", "a".repeat(2000));

        assertThat(refused.body()).isEqualTo("send less");
        assertThat(refused.statusCode()).isEqualTo(422);
    }

    @Test
    void aFileThatIsTooLargeInAFormWithATokenIsNotStored() throws Exception {
        HttpResponse<String> refused = upload(
                "--b\r\nContent-Disposition: form-data; name=\"_idempotence\"\r\n\r\nforged\r\n", "a".repeat(2000));

        assertThat(refused.body()).isEqualTo("send less");
        assertThat(refused.statusCode()).isEqualTo(422);
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnFilter {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> ownFilter(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> registration = new FilterRegistrationBean<>(
                    IdempotenceFilter.builder(idempotence).idOptional().build());
            registration.setOrder(5);
            return registration;
        }
    }

    @Test
    @Tag("all") // FormStartTest has the place of the filter, FormOverHttpTest#aReplayIsTheSameRedirect the second click
    void aDoubleClickRunsOnceBehindAFilterOfTheApplication() throws Exception {
        try (ConfigurableApplicationContext application =
                FormApplication.builder().sources(OwnFilter.class).run()) {
            String form = opened(application);

            HttpResponse<String> first = submit(application, form);
            HttpResponse<String> second = submit(application, form);

            assertThat(first.statusCode()).isEqualTo(302);
            assertThat(second.headers().firstValue("Idempotent-Replayed")).hasValue("true");
            assertThat(application.getBean(FormApplication.Shop.class).booked).containsExactly("10");
        }
    }
}
