package io.idempotence.spring.method;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.OnAbandoned;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;
import org.reactivestreams.Publisher;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.http.codec.ServerSentEvent;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Uses of {@code @Idempotent} that cannot work, and the messages with which the start fails. */
final class Misuses {
    private Misuses() {}

    @RestController
    static class ReadOnly {
        @Idempotent
        @GetMapping("/orders")
        String list() {
            return "";
        }
    }

    @RestController
    static class NotMapped {
        @Idempotent
        public String create() {
            return "";
        }
    }

    static class Service {
        @Idempotent
        public String create() {
            return "";
        }
    }

    @Idempotent
    static class WholeService {
        public String create() {
            return "";
        }
    }

    @RestController
    static class Events {
        @Idempotent
        @PostMapping("/events")
        SseEmitter events() {
            return new SseEmitter();
        }
    }

    @RestController
    static class Emitters {
        @Idempotent
        @PostMapping("/events")
        ResponseEntity<ResponseBodyEmitter> events() {
            return ResponseEntity.ok(new ResponseBodyEmitter());
        }
    }

    @RestController
    static class LaterEvents {
        @Idempotent
        @PostMapping("/events")
        CompletableFuture<ResponseEntity<SseEmitter>> events() {
            return CompletableFuture.completedFuture(ResponseEntity.ok(new SseEmitter()));
        }
    }

    @RestController
    static class ReactiveEvents {
        @Idempotent
        @PostMapping("/events")
        Flux<ServerSentEvent<String>> events() {
            return Flux.empty();
        }
    }

    @RestController
    static class NestedEvents {
        @Idempotent
        @PostMapping("/events")
        Mono<ResponseEntity<Flux<ServerSentEvent<?>>>> events() {
            return Mono.empty();
        }
    }

    abstract static class AnyEvents<T> {
        @Idempotent
        @PostMapping("/events")
        T events() {
            throw new IllegalStateException();
        }
    }

    @RestController
    static class InheritedEvents extends AnyEvents<SseEmitter> {}

    @RestController
    static class ProducedEvents {
        @Idempotent
        @PostMapping(path = "/events", produces = "text/event-stream;charset=UTF-8")
        Flux<Shape> events() {
            return Flux.empty();
        }
    }

    @RestController
    static class ProducedLines {
        @Idempotent
        @PostMapping(path = "/events", produces = "application/x-ndjson")
        Publisher<Shape> events() {
            return Flux.empty();
        }
    }

    @RestController
    static class Both {
        @Idempotent(keepOn = IllegalStateException.class, releaseOn = IllegalStateException.class)
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class FalseWithMore {
        @Idempotent(value = false, retention = "1h")
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class WithId {
        @Idempotent(id = "#order")
        @PostMapping("/orders")
        String create(String order) {
            return "";
        }
    }

    @RestController
    static class NoDuration {
        @Idempotent(retention = "soon")
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class NoUnit {
        @Idempotent(lease = "${lease}")
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class LongLease {
        @Idempotent(lease = "2h", retention = "1h")
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class LongWait {
        @Idempotent(maxWait = "1h")
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    static class LongWaitOfABean {
        @Idempotent(id = "#order", maxWait = "1h")
        void run(String order) {}
    }

    @RestController
    static class TwoRules {
        @Idempotent(failureRule = {FailureRule.STORE_EVERYTHING, FailureRule.STORE_SUCCESS_ONLY})
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class NoRecovery {
        @Idempotent(onAbandoned = OnAbandoned.RECOVER)
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @RestController
    static class NotCovered {
        @Idempotent
        @PostMapping("/orders/{id}")
        String create() {
            return "";
        }
    }

    static class PrivateMethod {
        @Idempotent(id = "#order")
        private String create(String order) {
            return "";
        }
    }

    static class FinalMethod {
        @Idempotent(id = "#order")
        public final String create(String order) {
            return "";
        }
    }

    static class WrongName {
        @Idempotent(id = "#message.id")
        public String create(String order) {
            return "";
        }
    }

    static class NoExpression {
        @Idempotent(id = "#order.")
        public String create(String order) {
            return "";
        }
    }

    static class AnyResult {
        @Idempotent(id = "#order")
        public Object create(String order) {
            return "";
        }
    }

    static class StreamResult {
        @Idempotent(id = "#order")
        public Stream<String> create(String order) {
            return Stream.of();
        }
    }

    static class FutureResult {
        @Idempotent(id = "#order")
        public Future<String> create(String order) {
            throw new IllegalStateException();
        }
    }

    static class GenericResult<T> {
        @Idempotent(id = "#order")
        public T create(String order) {
            throw new IllegalStateException();
        }
    }

    interface Shape {}

    abstract static class Importer {
        @Idempotent(id = "#file", operation = "import")
        public String run(String file) {
            return file;
        }
    }

    static class CustomerImporter extends Importer {}

    static class OrderImporter extends Importer {}

    @Import({CustomerImporter.class, OrderImporter.class})
    static class Importers {}

    static class InterfaceResult {
        @Idempotent(id = "#order")
        public Shape create(String order) {
            throw new IllegalStateException();
        }
    }

    static class InterfacesResult {
        @Idempotent(id = "#order")
        public List<Map<String, Shape[]>> create(String order) {
            throw new IllegalStateException();
        }
    }

    static class Optional {
        @Idempotent(id = "#order", required = false)
        public String create(String order) {
            return "";
        }
    }

    static class Overloaded {
        @Idempotent(id = "#order")
        public String create(String order) {
            return "";
        }

        @Idempotent(id = "#order")
        public String create(int order) {
            return "";
        }
    }

    static Stream<Arguments> all() {
        return Stream.of(
                Arguments.of(
                        ReadOnly.class,
                        "ReadOnly.list: it handles only GET, which is never protected.",
                        "Remove @Idempotent, or map the method to POST, PUT, PATCH or DELETE."),
                Arguments.of(
                        NotMapped.class,
                        "NotMapped.create: it is in no handler mapping, and it has no id.",
                        "Map the method to requests, for example with @PostMapping in a @RestController, or set the ID of a call,"
                                + " for example @Idempotent(id = \"#message.id\")."),
                Arguments.of(
                        Service.class, "Service.create: it is in no handler mapping, and it has no id.", "Map the"),
                Arguments.of(WholeService.class, "WholeService.create: it is in no handler mapping", "Map the"),
                Arguments.of(
                        Events.class,
                        " Events.events: it returns SseEmitter, and a stream of events cannot be stored and replayed.",
                        "Return the result as a whole, or remove @Idempotent."),
                Arguments.of(
                        Emitters.class,
                        "Emitters.events: it returns ResponseEntity<ResponseBodyEmitter>, and",
                        "Return the result"),
                Arguments.of(
                        LaterEvents.class,
                        "LaterEvents.events: it returns CompletableFuture<ResponseEntity<SseEmitter>>, and",
                        "Return the result"),
                Arguments.of(
                        ReactiveEvents.class,
                        "ReactiveEvents.events: it returns Flux<ServerSentEvent<String>>, and",
                        "Return the result"),
                Arguments.of(
                        NestedEvents.class,
                        "NestedEvents.events: it returns Mono<ResponseEntity<Flux<ServerSentEvent<?>>>>, and",
                        "Return the result"),
                Arguments.of(
                        InheritedEvents.class,
                        "InheritedEvents.events: it returns SseEmitter, and",
                        "Return the result"),
                Arguments.of(ProducedEvents.class, "ProducedEvents.events: it returns Flux<", "Return the result"),
                Arguments.of(ProducedLines.class, "ProducedLines.events: it returns Publisher<", "Return the result"),
                Arguments.of(
                        Both.class,
                        "Both.create: keepOn and releaseOn both have IllegalStateException.",
                        "Remove IllegalStateException from keepOn or from releaseOn."),
                Arguments.of(
                        FalseWithMore.class,
                        "FalseWithMore.create: @Idempotent(false) has other attributes, which mean nothing there.",
                        "Remove the other attributes, or remove the false."),
                Arguments.of(
                        WithId.class,
                        "WithId.create: it has an id, but requests carry the ID in the header Idempotency-Key.",
                        "Remove id and operation from handlers, or move @Idempotent to a method of a service."),
                Arguments.of(
                        NoDuration.class,
                        "NoDuration.create: retention = \"soon\" is not a duration.",
                        "Write retention with a unit, such as 500ms, 30s, 10m, 24h or 7d."),
                Arguments.of(
                        NoUnit.class,
                        "NoUnit.create: lease = \"${lease}\" is \"30\", which is not a duration.",
                        "Write lease with a unit"),
                Arguments.of(
                        LongLease.class,
                        "LongLease.create: retention (1h) must not be shorter than lease (2h)",
                        "Change retention or lease of @Idempotent."),
                Arguments.of(
                        LongWait.class,
                        "LongWait.create: maxWait must be 0 to 10 minutes, got 1h.",
                        "Change maxWait of @Idempotent."),
                Arguments.of(
                        LongWaitOfABean.class,
                        "LongWaitOfABean.run: maxWait must be 0 to 10 minutes",
                        "Change maxWait of @Idempotent."),
                Arguments.of(
                        TwoRules.class, "TwoRules.create: failureRule has 2 values.", "Set one value for failureRule."),
                Arguments.of(
                        NoRecovery.class,
                        "NoRecovery.create: onAbandoned = RECOVER needs one bean of type IdempotencePolicy.Recovery",
                        "Declare one bean of IdempotencePolicy.Recovery, mark one as @Primary, or choose another onAbandoned."),
                Arguments.of(
                        NotCovered.class,
                        "NotCovered.create: idempotence.server.paths does not cover /orders/{id}.",
                        "Add a pattern for /orders/{id} to idempotence.server.paths."),
                Arguments.of(
                        PrivateMethod.class,
                        "PrivateMethod.create: it is private, so Spring cannot intercept its calls.",
                        "Make the method public, and neither the method nor its class final or static."),
                Arguments.of(FinalMethod.class, "FinalMethod.create: it is final", "Make the method public"),
                Arguments.of(
                        WrongName.class,
                        "WrongName.create: its id \"#message.id\" has #message, and the parameters are #order.",
                        "Correct the names in id."),
                Arguments.of(
                        NoExpression.class,
                        "NoExpression.create: its id \"#order.\" is not an expression",
                        "Write id as an expression over the parameters, such as \"#message.id\"."),
                Arguments.of(
                        AnyResult.class,
                        "AnyResult.create: its result, java.lang.Object, cannot be stored: it may be any object",
                        "Return a value that JSON can represent, such as a record, or nothing."),
                Arguments.of(StreamResult.class, "cannot be stored: Stream is not a value.", "Return a value"),
                Arguments.of(FutureResult.class, "cannot be stored: Future is not a value.", "Return a value"),
                Arguments.of(GenericResult.class, "cannot be stored: its type is not known.", "Return a value"),
                Arguments.of(InterfaceResult.class, "Shape, cannot be stored: ", "Return a value"),
                Arguments.of(InterfacesResult.class, "Shape[]>>, cannot be stored: ", "Return a value"),
                Arguments.of(
                        Optional.class,
                        "Optional.create: it has required = false, but every call of a bean method needs an ID.",
                        "Remove required from methods that are not handlers."),
                Arguments.of(
                        Importers.class, "its operation import is also that of", "Set different values for operation"),
                Arguments.of(
                        Overloaded.class,
                        "Overloaded.create is also that of",
                        "Set different values for operation, so that equal IDs of the two are different IDs."));
    }
}
