package io.idempotence.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.examples.orders.network.Fault;
import java.io.BufferedWriter;
import java.io.IOException;
import java.net.CookieManager;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests of the example, as somebody uses it who clicks through it. */
@Tag("all") // QuickStartTest has a provider and a consumer on Spring Boot, too
class OrdersDemoTest {
    private static final Pattern FORM =
            Pattern.compile("<form[^>]*action=\"([^\"]+)\"[^>]*>(.*?)</form>", Pattern.DOTALL);
    private static final Pattern HIDDEN = Pattern.compile("<input[^>]*type=\"hidden\"[^>]*>");
    private static OrdersDemo demo;

    private final HttpClient browser =
            HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    @BeforeAll
    static void start() throws Exception {
        demo = OrdersDemo.start();
    }

    @AfterAll
    static void stop() {
        demo.close();
    }

    @Test
    void twoClicksAreOneOrderAndOnePayment() throws Exception {
        Form form = form("/", "/orders").with("item", "tea");
        URI first = submit(form);
        URI second = submit(form);
        assertThat(second).isEqualTo(first);
        assertThat(get(first)).contains("Paid: payment").contains(payments(1));
    }

    @ParameterizedTest
    @EnumSource(names = {"LOSE_RESPONSE", "LOSE_REQUEST", "DELAY_RESPONSE"})
    void faultIsRetriedAndPaidOnce(Fault fault) throws Exception {
        demo.network().breakNext(fault);
        URI order = submit(form("/", "/orders").with("item", "tea"));
        assertThat(get(order)).contains("Paid: payment").contains(payments(1));
    }

    @Test
    void doubtIsShownAndEndsWithTheSamePaymentWhenTheNetworkIsBack() throws Exception {
        demo.network().breakNext(Fault.LOSE_ALL_RESPONSES);
        URI order = submit(form("/", "/orders").with("item", "tea"));
        demo.network().breakNext(Fault.NONE);
        assertThat(get(order)).contains("We do not know yet").contains(payments(1));

        submit(form(order.getPath(), order.getPath() + "/payment"));
        assertThat(get(order)).contains("Paid: payment").contains(payments(1));
    }

    @Test
    void failureAfterTheCommitIsUnknownAndWaitsForAnOperator() throws Exception {
        demo.network().breakNext(Fault.FAIL_AFTER_COMMIT);
        URI order = submit(form("/", "/orders").with("item", "tea"));
        assertThat(get(order)).contains("We do not know yet").contains(payments(1));

        HttpRequest console = HttpRequest.newBuilder(demo.paymentsUrl().resolve("/idempotence"))
                .header("Authorization", "Basic " + credentials())
                .build();
        HttpResponse<String> page = browser.send(console, BodyHandlers.ofString());
        assertThat(page.statusCode()).isEqualTo(200);
        assertThat(page.body())
                .contains("1 record needs a decision")
                .containsPattern("key=idem%3A[A-Za-z0-9._-]+%3A[A-Za-z0-9_-]{43}");
    }

    /** All children of the process were stopped, also those of somebody else. */
    @Test
    void redisThatDoesNotStartEndsNoOtherProcess() throws Exception {
        Process other = new ProcessBuilder("cat").start();
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            assertThatThrownBy(() -> OrdersDemo.redis(taken.getLocalPort())).isInstanceOf(IOException.class);

            try (BufferedWriter in = other.outputWriter()) {
                in.write("still here");
            }
            assertThat(other.inputReader().readLine()).isEqualTo("still here");
        } finally {
            other.destroy();
        }
    }

    private static String credentials() {
        return Base64.getEncoder().encodeToString(("operator:" + demo.password()).getBytes(StandardCharsets.UTF_8));
    }

    private static String payments(int count) {
        return "<dd id=\"payments\">" + count + "</dd>";
    }

    private String get(URI page) throws IOException, InterruptedException {
        return browser.send(HttpRequest.newBuilder(page).build(), BodyHandlers.ofString())
                .body();
    }

    private Form form(String page, String action) throws IOException, InterruptedException {
        String html = get(demo.shopUrl().resolve(page));
        Matcher form = FORM.matcher(html);
        while (form.find()) {
            if (form.group(1).equals(action)) {
                Map<String, String> fields = new LinkedHashMap<>();
                Matcher hidden = HIDDEN.matcher(form.group(2));
                while (hidden.find()) {
                    fields.put(attribute("name", hidden.group()), attribute("value", hidden.group()));
                }
                return new Form(action, fields);
            }
        }
        throw new AssertionError("no form for " + action + " in " + html);
    }

    private static String attribute(String name, String tag) {
        Matcher attribute = Pattern.compile(name + "=\"([^\"]*)\"").matcher(tag);
        assertThat(attribute.find()).as("%s in %s", name, tag).isTrue();
        return attribute.group(1);
    }

    /** Returns where the response redirects to. */
    private URI submit(Form form) throws IOException, InterruptedException {
        String body = form.fields().entrySet().stream()
                .map(field -> encoded(field.getKey()) + "=" + encoded(field.getValue()))
                .collect(Collectors.joining("&"));
        HttpRequest request = HttpRequest.newBuilder(demo.shopUrl().resolve(form.action()))
                .header("Content-Type", "application/x-www-form-urlencoded")
                .POST(BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> response = browser.send(request, BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isIn(302, 303);
        return demo.shopUrl().resolve(response.headers().firstValue("Location").orElseThrow());
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private record Form(String action, Map<String, String> fields) {
        Form with(String name, String value) {
            Map<String, String> more = new LinkedHashMap<>(fields);
            more.put(name, value);
            return new Form(action, more);
        }
    }
}
