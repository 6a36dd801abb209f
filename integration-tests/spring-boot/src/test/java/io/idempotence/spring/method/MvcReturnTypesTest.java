package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.server.IdempotentExecution;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import org.springframework.web.servlet.view.RedirectView;

/** Tests of what Spring MVC handlers may return or throw: the duplicate gets what the first caller saw, byte for byte, with one execution. */
class MvcReturnTypesTest {
    private static final Map<String, AtomicInteger> RUNS = new ConcurrentHashMap<>();
    private static final Map<String, CountDownLatch> LATE = new ConcurrentHashMap<>();
    private final TestServer server = TestServer.ofHandlers();

    private final String id = UUID.randomUUID().toString();

    private static String ran(String what) {
        return what + " "
                + RUNS.computeIfAbsent(what, any -> new AtomicInteger()).incrementAndGet();
    }

    record Order(String number, int amount) {}

    static class RefusedException extends RuntimeException {}

    static class SoldOutException extends RuntimeException {}

    @Import({Returns.class, Pages.class, Advice.class})
    static class Everything {}

    @RestController
    @Idempotent
    static class Returns {
        @PostMapping("/future")
        CompletableFuture<Order> future() {
            return CompletableFuture.supplyAsync(() -> new Order(ran("future"), 7));
        }

        @PostMapping("/deferred")
        DeferredResult<Order> deferred() {
            DeferredResult<Order> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> result.setResult(new Order(ran("deferred"), 7)));
            return result;
        }

        @PostMapping("/deferred-error")
        DeferredResult<Order> deferredError() {
            DeferredResult<Order> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> {
                ran("deferred-error");
                result.setErrorResult(new RefusedException());
            });
            return result;
        }

        @PostMapping("/deferred-late")
        DeferredResult<Order> deferredLate() {
            return late("deferred-late");
        }

        @Idempotent(keepOn = RuntimeException.class)
        @PostMapping("/deferred-late-kept")
        DeferredResult<Order> deferredLateKept() {
            return late("deferred-late-kept");
        }

        private static DeferredResult<Order> late(String name) {
            DeferredResult<Order> result = new DeferredResult<>(50L);
            ran(name);
            result.onCompletion(() -> {
                result.setResult(new Order("late", 7));
                LATE.computeIfAbsent(name, any -> new CountDownLatch(1)).countDown();
            });
            return result;
        }

        @PostMapping("/callable")
        Callable<Order> callable() {
            return () -> new Order(ran("callable"), 7);
        }

        @PostMapping("/callable-thread")
        Callable<String> callableThread() {
            return () -> ran("callable-thread") + " of "
                    + IdempotentExecution.current().size();
        }

        @PostMapping("/web-async-task")
        WebAsyncTask<Order> webAsyncTask() {
            return new WebAsyncTask<>(10_000L, () -> new Order(ran("web-async-task"), 7));
        }

        @PostMapping("/streaming")
        ResponseEntity<StreamingResponseBody> streaming() {
            return ResponseEntity.ok().header("Content-Type", "text/plain").body(out -> {
                for (int i = 0; i < 100; i++) {
                    out.write(("line " + i + "\n").getBytes(StandardCharsets.UTF_8));
                }
                out.write(ran("streaming").getBytes(StandardCharsets.UTF_8));
            });
        }

        @PostMapping("/entity")
        ResponseEntity<Order> entity() {
            return ResponseEntity.created(URI.create("/orders/7")).eTag("\"7\"").body(new Order(ran("entity"), 7));
        }

        @PostMapping("/bytes")
        byte[] bytes() {
            return ran("bytes").getBytes(StandardCharsets.UTF_8);
        }

        @PostMapping("/nothing")
        @ResponseStatus(HttpStatus.NO_CONTENT)
        void nothing() {
            ran("nothing");
        }

        @PostMapping("/problem")
        ProblemDetail problem() {
            return ProblemDetail.forStatusAndDetail(HttpStatus.CONFLICT, ran("problem"));
        }

        @PostMapping("/redirect-entity")
        ResponseEntity<Void> redirectEntity() {
            ran("redirect-entity");
            return ResponseEntity.status(303).location(URI.create("/orders/7")).build();
        }

        @PostMapping("/status-exception")
        String statusException() {
            throw new ResponseStatusException(HttpStatus.CONFLICT, ran("status-exception"));
        }

        @PostMapping("/handled")
        String handled() {
            throw new RefusedException();
        }

        @PostMapping("/handled-future")
        CompletableFuture<String> handledFuture() {
            return CompletableFuture.supplyAsync(() -> {
                throw new RefusedException();
            });
        }

        /** The handler of this exception renders it with a status after which the ID is kept. */
        @PostMapping("/released-future")
        @Idempotent(releaseOn = RefusedException.class)
        CompletableFuture<String> releasedFuture() {
            return handledFuture();
        }

        @PostMapping("/released-deferred")
        @Idempotent(releaseOn = RefusedException.class)
        DeferredResult<Order> releasedDeferred() {
            return deferredError();
        }

        @PostMapping("/released-callable")
        @Idempotent(releaseOn = RefusedException.class)
        Callable<Order> releasedCallable() {
            return () -> {
                throw new RefusedException();
            };
        }

        @ExceptionHandler(RefusedException.class)
        ResponseEntity<Order> refused() {
            return ResponseEntity.unprocessableEntity().body(new Order(ran("refused"), 0));
        }

        @PostMapping("/advised")
        String advised() {
            throw new SoldOutException();
        }

        @PostMapping("/broken")
        @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
        String broken() {
            throw new IllegalStateException(ran("broken"));
        }

        @PostMapping("/unreadable")
        String unreadable(@RequestBody Order order) {
            return ran("unreadable");
        }
    }

    @Controller
    static class Pages {
        @Idempotent
        @PostMapping("/redirect")
        String redirect() {
            ran("redirect");
            return "redirect:/orders/7";
        }

        @Idempotent
        @PostMapping("/redirect-view")
        RedirectView redirectView() {
            ran("redirect-view");
            RedirectView view = new RedirectView("/orders/7");
            view.setStatusCode(HttpStatus.SEE_OTHER);
            return view;
        }
    }

    @ControllerAdvice
    static class Advice {
        @ExceptionHandler(SoldOutException.class)
        @ResponseBody
        ResponseEntity<ProblemDetail> soldOut() {
            ProblemDetail problem = ProblemDetail.forStatusAndDetail(HttpStatus.GONE, ran("sold-out"));
            return ResponseEntity.of(problem).build();
        }
    }

    @ParameterizedTest
    @DisplayName("P4: a duplicate gets what the first caller saw, and the handler runs once")
    @CsvSource({
        "/future, 200, future",
        "/deferred, 200, deferred",
        "/deferred-error, 422, deferred-error",
        "/callable, 200, callable",
        "/web-async-task, 200, web-async-task",
        "/streaming, 200, streaming",
        "/entity, 201, entity",
        "/bytes, 200, bytes",
        "/nothing, 204, nothing",
        "/problem, 409, problem",
        "/redirect-entity, 303, redirect-entity",
        "/redirect, 302, redirect",
        "/redirect-view, 303, redirect-view",
        "/status-exception, 409, status-exception",
        "/handled, 422, refused",
        "/handled-future, 422, refused",
        "/advised, 410, sold-out",
        "/broken, 500, broken",
    })
    void aDuplicateGetsWhatTheFirstCallerSaw(String path, int status, String what) {
        int before = RUNS.getOrDefault(what, new AtomicInteger()).get();
        TestServer.Response first = server.post(path, id);
        TestServer.Response second = server.post(path, id);
        assertThat(first.status()).isEqualTo(status);
        assertThat(first.isReplayed()).isFalse();
        assertThat(second.isReplayed()).isTrue();
        assertThat(second.same()).isEqualTo(first.same());
        assertThat(RUNS.get(what)).hasValue(before + 1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/released-future", "/released-deferred", "/released-callable"})
    void anExceptionOfAnAsynchronousHandlerDecidesAsTheHandlerDeclares(String path) {
        for (int i = 0; i < 2; i++) {
            TestServer.Response response = server.post(path, id);
            assertThat(response.status()).isEqualTo(422);
            assertThat(response.isReplayed()).as("it runs again").isFalse();
        }
    }

    @Test
    void anErrorPageInHtmlIsReplayed() {
        String[] browser = {"Accept", "text/html", "Content-Type", "application/json"};
        TestServer.Response first = server.post("/broken", id, browser);
        assertThat(first.body()).contains("<html>").contains("Internal Server Error");
        assertThat(server.post("/broken", id, browser).same()).isEqualTo(first.same());
    }

    @Test
    void aRefusalOfSpringMvcIsReplayed() {
        TestServer.Response first = server.send("POST", "/unreadable", id, "{");
        assertThat(first.status()).isEqualTo(400);
        assertThat(server.send("POST", "/unreadable", id, "{").same()).isEqualTo(first.same());
    }

    /** The exception of the timeout is Spring's. As one of the handler's, it was kept. */
    @ParameterizedTest
    @ValueSource(strings = {"deferred-late", "deferred-late-kept"})
    @DisplayName("P6: after a timeout of a deferred result the outcome is unknown")
    void afterATimeoutTheOutcomeIsUnknown(String name) throws Exception {
        TestServer.Response first = server.post("/" + name, id);
        assertThat(first.status()).isEqualTo(503);
        assertThat(LATE.computeIfAbsent(name, any -> new CountDownLatch(1)).await(60, TimeUnit.SECONDS))
                .as("the completion was reported")
                .isTrue();
        TestServer.Response second = server.post("/" + name, id);
        assertThat(second.refusal()).isEqualTo("outcome-unknown");
        assertThat(RUNS.get(name)).hasValue(1);
    }

    @Test
    void theThreadOfACallableIsPartOfTheExecution() {
        assertThat(server.post("/callable-thread", id).body()).isEqualTo("callable-thread 1 of 1");
    }
}
