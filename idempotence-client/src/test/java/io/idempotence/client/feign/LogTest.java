package io.idempotence.client.feign;

import static ch.qos.logback.classic.Level.DEBUG;
import static ch.qos.logback.classic.Level.WARN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;
import feign.hc5.ApacheHttp5Client;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Reply;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The log lines that an operator reads: each unknown outcome, and no ID above DEBUG. */
class LogTest extends FeignTestBase {
    private static final IdempotenceId ID = IdempotenceId.of("the-id-of-this-call");

    @RegisterExtension
    private final SilentLog log = new SilentLog("io.idempotence.client");

    /** Without a listener, as most have none. */
    private final IdempotenceClientConfig silent = IdempotenceClientConfig.builder()
            .waitBound(Duration.ofMillis(1))
            .maxWait(Duration.ofMillis(5))
            .deadline(Duration.ofMinutes(2))
            .build();

    private static Reply[] thrice(Reply reply) {
        return new Reply[] {reply, reply, reply};
    }

    static Stream<List<Reply>> ends() {
        return Stream.of(
                List.of(thrice(Reply.status(504))),
                List.of(thrice(Reply.status(503))),
                List.of(thrice(Reply.refusal("storage-unavailable", 503))),
                List.of(Reply.refusal("key-reused", 422)),
                List.of(Reply.refusal("outcome-unknown", 409)),
                List.of(Reply.status(404)),
                List.of(Reply.status(503), Reply.ok("stored").header("Idempotent-Replayed", "true")));
    }

    private Throwable endOf(List<Reply> replies) {
        server.respond(replies.toArray(Reply[]::new));
        return catchThrowable(
                () -> IdempotenceScope.with(ID, () -> orders(silent).create("x")));
    }

    private List<String> lines(Level level) {
        return log.events().stream()
                .filter(event -> event.getLevel() == level)
                .map(ILoggingEvent::getFormattedMessage)
                .toList();
    }

    @ParameterizedTest
    @MethodSource("ends")
    void everyLineOfACallIsOfTheLoggerThatIsDocumented(List<Reply> replies) {
        log.logger().setLevel(DEBUG);
        endOf(replies);
        assertThat(log.events())
                .isNotEmpty()
                .allSatisfy(event -> assertThat(event.getLoggerName()).isEqualTo(IdempotentFeign.class.getName()));
    }

    @Test
    void clientOfAnotherBuildWhoseRequestsCannotBeEndedIsAWarningWhenItIsBuilt() {
        Orders orders = orders(silent, builder -> builder.client(new ApacheHttp5Client()));
        orders.create("x");
        orders.create("y");
        assertThat(lines(WARN))
                .singleElement()
                .asString()
                .contains("feign.hc5.ApacheHttp5Client", "deadline", "docs/feign.md");
    }
}
