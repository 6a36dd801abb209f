package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.OnAbandoned;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.spring.method.IdempotentOperation.Kind;
import io.idempotence.spring.method.IdempotentOperation.Origin;
import io.idempotence.spring.method.IdempotentOperation.Setting;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.AliasFor;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.server.ResponseStatusException;

/** {@code @Idempotent} on handlers of Spring MVC, over real HTTP. */
class IdempotentHandlersTest {
    private static final Map<String, AtomicInteger> RUNS = new ConcurrentHashMap<>();
    private final TestServer server = TestServer.ofHandlers();

    private final String id = UUID.randomUUID().toString();

    static String ran(String what) {
        return what + " "
                + RUNS.computeIfAbsent(what, any -> new AtomicInteger()).incrementAndGet();
    }

    private static int runs(String what) {
        return RUNS.getOrDefault(what, new AtomicInteger()).get();
    }

    @Import({OfMethods.class, OfClass.class, OfInterface.class, Forms.class, Rendered.class, Advice.class})
    static class Controllers {}

    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.METHOD)
    @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
    @interface Payment {
        @AliasFor(annotation = Idempotent.class)
        String retention() default "48h";
    }

    static class NoMoneyException extends RuntimeException {}

    static class BusyException extends RuntimeException {}

    @ResponseStatus(HttpStatus.CONFLICT)
    static class ClosedException extends RuntimeException {}

    @RestController
    static class OfMethods {
        @Idempotent
        @PostMapping("/orders")
        String create() {
            return ran("create");
        }

        @Idempotent
        @PutMapping("/orders/{id}")
        String change(@PathVariable("id") String id) {
            return ran("change");
        }

        @PostMapping("/search")
        String search() {
            return ran("search");
        }

        @Idempotent(required = false)
        @PostMapping("/carts")
        String optional() {
            return ran("optional");
        }

        @Idempotent(keepOn = NoMoneyException.class, releaseOn = BusyException.class)
        @PostMapping("/charges/{how}")
        String charge(@PathVariable("how") String how) {
            ran("charge " + how);
            switch (how) {
                case "no-money" -> throw new NoMoneyException();
                case "busy" -> throw new BusyException();
                default -> throw new IllegalStateException();
            }
        }

        @Payment
        @PostMapping("/payments")
        String pay() {
            ran("pay");
            throw new IllegalStateException();
        }

        @Idempotent(
                retention = "${orders.retention}",
                lease = "10s",
                onAbandoned = OnAbandoned.RE_EXECUTE,
                maxWait = "1500ms")
        @RequestMapping(path = {"/refunds", "/reversals"})
        String refund() {
            return ran("refund");
        }
    }

    @RestController
    @Idempotent
    static class OfClass {
        @PostMapping("/all/one")
        String one() {
            return ran("one");
        }

        @Idempotent(false)
        @PostMapping("/all/but-this")
        String butThis() {
            return ran("butThis");
        }

        @GetMapping("/all/read")
        String read() {
            return ran("read");
        }
    }

    /** An interface that a consumer and a provider share. */
    interface OrdersApi {
        @Idempotent
        @PostMapping("/shared/orders")
        String shared(@RequestBody String order);
    }

    @RestController
    static class OfInterface implements OrdersApi {
        @Override
        public String shared(String order) {
            return ran("shared");
        }
    }

    @RestController
    static class Forms {
        @Idempotent
        @PostMapping(path = "/forms", params = "kind=a")
        String a(@RequestParam("text") String text) {
            return ran("form") + " " + text;
        }

        @PostMapping(path = "/forms", params = "kind=b")
        String b(@RequestParam("text") String text) {
            return ran("form b") + " " + text;
        }
    }

    /** A handler whose exceptions Spring MVC renders, each with a status that says the opposite. */
    @RestController
    static class Rendered {
        @Idempotent(
                keepOn = NoMoneyException.class,
                releaseOn = {BusyException.class, ClosedException.class})
        @PostMapping("/rendered/{how}")
        String render(@PathVariable("how") String how, HttpServletResponse response) throws IOException {
            ran("render " + how);
            switch (how) {
                case "no-money" -> throw new NoMoneyException();
                case "busy" -> throw new BusyException();
                case "closed" -> throw new ClosedException();
                case "busy-as-cause" ->
                    throw new ResponseStatusException(HttpStatus.CONFLICT, "busy", new BusyException());
                case "committed" -> {
                    IdempotentExecution.current().forEach(IdempotentExecution::tookEffect);
                    throw new BusyException();
                }
                case "decided" -> {
                    IdempotentExecution.current().forEach(IdempotentExecution::keep);
                    throw new BusyException();
                }
                case "unnamed" -> throw new IllegalArgumentException();
                case "sent" -> {
                    try (PrintWriter out = response.getWriter()) {
                        out.print("paid");
                    }
                    throw new BusyException();
                }
                default -> throw new IllegalStateException();
            }
        }

        @Idempotent(releaseOn = Exception.class)
        @PostMapping("/rendered")
        Map<String, String> renderAsJson() {
            ran("render as JSON");
            return Map.of("payment", "made");
        }
    }

    @RestControllerAdvice(assignableTypes = Rendered.class)
    static class Advice {
        @ExceptionHandler
        ResponseEntity<String> busy(BusyException e) {
            return ResponseEntity.status(HttpStatus.OK).body("busy");
        }

        @ExceptionHandler
        ResponseEntity<String> malformed(IllegalArgumentException e) {
            return ResponseEntity.badRequest().body("malformed");
        }

        @ExceptionHandler({NoMoneyException.class, IllegalStateException.class})
        ResponseEntity<String> anyOther() {
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "POST, /orders, create",
        "PUT, /orders/7, change",
        "POST, /all/one, one",
        "POST, /shared/orders, shared",
        "POST, /payments, pay",
        "DELETE, /reversals, refund",
        "POST, /ord%65rs, create"
    })
    @DisplayName("P6: an @Idempotent handler does not run without an ID")
    void anIdempotentHandlerDoesNotRunWithoutAnId(String method, String path, String what) {
        int before = runs(what);
        TestServer.Response response = server.send(method, path, null, "{}");
        assertThat(response.status()).isEqualTo(400);
        assertThat(response.refusal()).isEqualTo("key-missing");
        assertThat(runs(what)).isEqualTo(before);
    }

    @ParameterizedTest
    @CsvSource({
        "POST, /orders, create",
        "PUT, /orders/7, change",
        "POST, /all/one, one",
        "POST, /shared/orders, shared",
        "POST, /carts, optional",
        "POST, /search, search"
    })
    @DisplayName("P2: a handler runs once for each ID")
    void aHandlerRunsOnceForEachId(String method, String path, String what) {
        int before = runs(what);
        TestServer.Response first = server.send(method, path, id, "{}");
        TestServer.Response second = server.send(method, path, id, "{}");
        assertThat(second.same()).isEqualTo(first.same());
        assertThat(second.isReplayed()).isTrue();
        assertThat(runs(what)).isEqualTo(before + 1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/carts", "/search", "/all/but-this"})
    void otherHandlersRunWithoutAnId(String path) {
        assertThat(server.post(path, null).status()).isEqualTo(200);
    }

    @Test
    void aHandlerThatIsNotIdempotentRunsForEveryRequest() {
        assertThat(server.post("/all/but-this", id).body())
                .isNotEqualTo(server.post("/all/but-this", id).body());
    }

    @Test
    void readingIsNeverProtected() {
        assertThat(server.send("GET", "/all/read", id, "").body())
                .isNotEqualTo(server.send("GET", "/all/read", id, "").body());
    }

    @Test
    void exceptionsDecideAsTheHandlerDeclares() {
        assertThat(server.post("/charges/no-money", id).status()).isEqualTo(500);
        assertThat(server.post("/charges/no-money", id).isReplayed()).isTrue();
        assertThat(runs("charge no-money")).isEqualTo(1);
        server.post("/charges/busy", id + "b");
        server.post("/charges/busy", id + "b");
        assertThat(runs("charge busy")).isEqualTo(2);
    }

    /** The status of the rendered response decided. */
    @ParameterizedTest
    @CsvSource({
        "no-money, 500, kept",
        "busy, 200, released",
        "closed, 409, released",
        "busy-as-cause, 200, released",
        "committed, 200, unknown",
        "decided, 200, kept",
        "unnamed, 400, kept",
        "sent, 200, kept",
        "unnamed-failure, 500, released"
    })
    void exceptionsDecideAlsoIfSpringMvcRendersThem(String how, int status, String end) {
        TestServer.Response first = server.post("/rendered/" + how, id);
        TestServer.Response second = server.post("/rendered/" + how, id);
        assertThat(first.status()).isEqualTo(status);
        assertThat(second.isReplayed()).isEqualTo(end.equals("kept"));
        assertThat(second.refusal()).isEqualTo(end.equals("unknown") ? "outcome-unknown" : null);
        assertThat(runs("render " + how)).isEqualTo(end.equals("released") ? 2 : 1);
    }

    /** The exception is Spring's, and the handler had returned. The ID was released. */
    @Test
    void aResponseThatTheCallerDoesNotAcceptIsNoFailureOfTheHandler() {
        String[] accept = {"Accept", "image/png"};
        TestServer.Response first = server.post("/rendered", id, accept);
        assertThat(first.status()).isEqualTo(406);
        assertThat(server.post("/rendered", id, accept).isReplayed()).isTrue();
        assertThat(runs("render as JSON")).isEqualTo(1);
    }

    @Test
    void anAnnotationMayReplaceAnother() {
        int before = runs("pay");
        TestServer.Response first = server.post("/payments", id);
        assertThat(first.status()).isEqualTo(500);
        assertThat(server.post("/payments", id).same()).isEqualTo(first.same());
        assertThat(runs("pay")).isEqualTo(before + 1);
    }

    /** A mapping that depends on a parameter would otherwise read the form before the filter does. */
    @Test
    void aFormIsStillThereForItsHandler() {
        String[] form = {"Content-Type", "application/x-www-form-urlencoded"};
        TestServer.Response first = server.send("POST", "/forms", id, "kind=a&text=hi", form);
        assertThat(first.body()).isEqualTo("form 1 hi");
        assertThat(server.send("POST", "/forms", id, "kind=a&text=hi", form).same())
                .isEqualTo(first.same());
        assertThat(server.send("POST", "/forms", id, "kind=a&text=ho", form).refusal())
                .isEqualTo("key-reused");
        assertThat(server.send("POST", "/forms", id + "b", "kind=b&text=hi", form)
                        .body())
                .isEqualTo("form b 1 hi");
    }

    @Test
    void operationsAreListedWithTheirSettingsAndWhereTheseComeFrom() {
        List<IdempotentOperation> all = server.bean(IdempotentOperations.class).all().stream()
                .filter(operation -> operation.handler().matches("(Forms|Of.*)\\..*"))
                .toList();
        assertThat(all)
                .extracting(IdempotentOperation::handler)
                .containsExactly(
                        "Forms.a",
                        "OfClass.butThis",
                        "OfClass.one",
                        "OfInterface.shared",
                        "OfMethods.change",
                        "OfMethods.charge",
                        "OfMethods.create",
                        "OfMethods.optional",
                        "OfMethods.pay",
                        "OfMethods.refund");
        IdempotentOperation refund = all.get(9);
        assertThat(refund.kind()).isEqualTo(Kind.HANDLER);
        assertThat(refund.methods()).isEmpty();
        assertThat(refund.paths()).containsExactly("/refunds", "/reversals");
        assertThat(refund.settings())
                .containsExactly(
                        entry("value", new Setting("true", Origin.ANNOTATION)),
                        entry("required", new Setting("true", Origin.ANNOTATION)),
                        entry("retention", new Setting("36h", Origin.ANNOTATION)),
                        entry("lease", new Setting("10s", Origin.ANNOTATION)),
                        entry("failureRule", new Setting("RELEASE_ON_SYSTEM_FAILURE", Origin.DEFAULT)),
                        entry("onAbandoned", new Setting("RE_EXECUTE", Origin.ANNOTATION)),
                        entry("maxWait", new Setting("1500ms", Origin.ANNOTATION)));
        assertThat(all.get(5).settings())
                .contains(
                        entry("lease", new Setting("20s", Origin.PROPERTY)),
                        entry("retention", new Setting("1d", Origin.DEFAULT)),
                        entry("maxWait", new Setting("10s", Origin.DEFAULT)),
                        entry("keepOn", new Setting("NoMoneyException", Origin.ANNOTATION)),
                        entry("releaseOn", new Setting("BusyException", Origin.ANNOTATION)));
        assertThat(all.get(8).settings()).contains(entry("retention", new Setting("2d", Origin.ANNOTATION)));
    }
}
