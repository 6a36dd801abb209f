package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Several handlers of one path, which the parameters of a form choose. */
class FormButtonsTest {
    private static final String BOUNDARY = "edge";

    /** A form with several buttons. */
    @RestController
    static class Buttons {
        @Idempotent
        @PostMapping(path = "/order", params = "pay")
        String pay(@RequestParam("text") String text) {
            return "paid " + text + " " + UUID.randomUUID();
        }

        @Idempotent(false)
        @PostMapping(path = "/order", params = "preview")
        String preview(@RequestParam("text") String text) {
            return "preview " + text + " " + UUID.randomUUID();
        }

        @Idempotent(required = false)
        @PostMapping(path = "/order", params = "draft")
        String draft(@RequestParam("text") String text) {
            return "draft " + text + " " + UUID.randomUUID();
        }

        @PostMapping(path = "/order", params = "check")
        String check(@RequestParam("text") String text) {
            return "checked " + text + " " + UUID.randomUUID();
        }

        @Idempotent
        @PostMapping(path = "/json", consumes = "application/json")
        String json() {
            return "read";
        }
    }

    private enum Servers {
        PATH_PATTERNS("path_pattern_parser"),
        ANT_PATHS("ant_path_matcher");

        final TestServer server;

        Servers(String matching) {
            server = TestServer.start(
                    Buttons.class,
                    "--spring.mvc.pathmatch.matching-strategy=" + matching,
                    "--server.http2.enabled=true");
        }
    }

    @AfterAll
    static void stop() {
        for (Servers each : Servers.values()) {
            each.server.close();
        }
    }

    enum Form {
        URL_ENCODED("/order", "application/x-www-form-urlencoded") {
            @Override
            String body(String button) {
                return button + "=&text=gr%C3%BC%C3%9Fe";
            }
        },
        WITH_QUERY("/order?text=gr%C3%BC%C3%9Fe&page=2", "application/x-www-form-urlencoded") {
            @Override
            String body(String button) {
                return button + "=1";
            }
        },
        MULTIPART("/order", "multipart/form-data; boundary=" + BOUNDARY) {
            @Override
            String body(String button) {
                return part(button, "") + part("text", "grüße") + "--" + BOUNDARY + "--\r\n";
            }
        },
        MULTIPART_WITH_QUERY("/order?text=gr%C3%BC%C3%9Fe", "multipart/form-data; boundary=" + BOUNDARY) {
            @Override
            String body(String button) {
                return part(button, "1") + "--" + BOUNDARY + "--\r\n";
            }
        };

        private final String path;
        private final String type;

        Form(String path, String type) {
            this.path = path;
            this.type = type;
        }

        private static String part(String name, String value) {
            return "--" + BOUNDARY + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
                    + "\r\n";
        }

        abstract String body(String button);

        TestServer.Response post(TestServer server, String button, String id) {
            return server.send("POST", path, id, body(button), "Content-Type", type);
        }
    }

    @ParameterizedTest
    @EnumSource
    void eachButtonOfAFormHasTheSettingsOfItsOwnHandler(Form form) {
        for (Servers each : Servers.values()) {
            assertOwnSettings(form, each.server);
        }
    }

    static void assertOwnSettings(Form form, TestServer server) {
        assertThat(form.post(server, "pay", null).refusal()).isEqualTo("key-missing");
        assertRunsOnce(form, server, "pay", "paid grüße");

        String id = UUID.randomUUID().toString();
        assertThat(form.post(server, "preview", null).body()).startsWith("preview grüße");
        TestServer.Response preview = form.post(server, "preview", id);
        assertThat(preview.body()).startsWith("preview grüße");
        assertThat(form.post(server, "preview", id).body())
                .startsWith("preview grüße")
                .isNotEqualTo(preview.body());

        assertThat(form.post(server, "draft", null).body()).startsWith("draft grüße");
        assertRunsOnce(form, server, "draft", "draft grüße");
        assertThat(form.post(server, "check", null).body()).startsWith("checked grüße");
        assertRunsOnce(form, server, "check", "checked grüße");
    }

    private static void assertRunsOnce(Form form, TestServer server, String button, String result) {
        String id = UUID.randomUUID().toString();
        TestServer.Response first = form.post(server, button, id);
        assertThat(first.body()).startsWith(result);
        TestServer.Response retry = form.post(server, button, id);
        assertThat(retry.body()).isEqualTo(first.body());
        assertThat(retry.isReplayed()).isTrue();
        String other = button.equals("pay") ? "check" : "pay";
        assertThat(form.post(server, other, id).refusal()).isEqualTo("key-reused");
    }

    @ParameterizedTest
    @EnumSource
    void whatNoHandlerTakesIsRefusedAsWithoutAnnotations(Form form) {
        for (Servers each : Servers.values()) {
            TestServer.Response noButton = form.post(each.server, "other", null);
            assertThat(noButton.status()).isEqualTo(400);
            assertThat(noButton.refusal()).isNull();
            assertThat(each.server
                            .send("POST", "/json", null, "text", "Content-Type", "text/plain")
                            .status())
                    .isEqualTo(415);
        }
    }

    @Test
    void aFormThatCannotBeParsedIsABadRequest() {
        String[] form = {"Content-Type", "application/x-www-form-urlencoded"};
        for (Servers each : Servers.values()) {
            for (String id : new String[] {null, UUID.randomUUID().toString()}) {
                assertThat(each.server
                                .send("POST", "/order", id, "pay=&text=%zz", form)
                                .status())
                        .isEqualTo(400);
            }
        }
    }

    /** The filter took the parsed body for an empty one, so that another form got the response of the first. */
    @Test
    void formsOfUnknownLengthAreComparedOverHttp2() throws Exception {
        TestServer server = Servers.PATH_PATTERNS.server;
        HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).build();
        // The first request upgrades the connection.
        client.send(HttpRequest.newBuilder(server.uri("/")).build(), HttpResponse.BodyHandlers.discarding());
        String id = UUID.randomUUID().toString();

        HttpResponse<String> first = client.send(streamed(server, id, "tea"), HttpResponse.BodyHandlers.ofString());
        assertThat(first.version()).isEqualTo(HttpClient.Version.HTTP_2);
        assertThat(first.body()).startsWith("paid tea");
        assertThat(client.send(streamed(server, id, "tea"), HttpResponse.BodyHandlers.ofString())
                        .body())
                .isEqualTo(first.body());
        assertThat(client.send(streamed(server, id, "gold"), HttpResponse.BodyHandlers.ofString())
                        .headers()
                        .firstValue("Idempotency-Refusal"))
                .contains("key-reused");
    }

    private static HttpRequest streamed(TestServer server, String id, String text) {
        return HttpRequest.newBuilder(server.uri("/order"))
                .header("Idempotency-Key", id)
                .header("Content-Type", "application/x-www-form-urlencoded")
                .POST(HttpRequest.BodyPublishers.fromPublisher(
                        HttpRequest.BodyPublishers.ofString("pay=&text=" + text)))
                .build();
    }
}
