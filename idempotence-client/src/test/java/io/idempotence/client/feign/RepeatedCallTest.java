package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Feign;
import feign.Request;
import feign.RequestTemplate;
import feign.Target;
import feign.Target.HardCodedTarget;
import io.idempotence.InboundRequest;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.TestServer.Reply;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The warning about a call in doubt that its caller repeats with a new ID. */
class RepeatedCallTest extends FeignTestBase {
    @RegisterExtension
    private final SilentLog log = new SilentLog(IdempotentFeign.class.getName());

    private final Orders orders = orders();

    private void endsUnknown() {
        server.respond(Reply.status(504), Reply.status(504), Reply.status(504));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(OutcomeUnknown.class);
    }

    private void succeeds(String body) {
        server.respond(Reply.ok("done"));
        orders.create(body);
    }

    private List<String> repeats() {
        return log.messages().stream()
                .filter(line -> line.contains("called again"))
                .toList();
    }

    private static void inside(InboundRequest inbound, Runnable work) {
        Runnable leave = inbound.enter();
        try {
            work.run();
        } finally {
            leave.run();
        }
    }

    @Test
    void callInDoubtThatIsMadeAgainUnderANewIdIsAWarningOnce() {
        for (int i = 0; i < 2; i++) {
            endsUnknown();
            succeeds("x");
        }
        assertThat(repeats())
                .singleElement()
                .asString()
                .contains("orders", "Orders#create(String)", "under a new ID", "IdempotenceScope");
    }

    @Test
    void callThatIsMadeAgainAtAnotherHostIsAWarning() {
        AtomicInteger requests = new AtomicInteger();
        Target<Orders> hosts = new HardCodedTarget<>(Orders.class, "orders", server.url()) {
            @Override
            public Request apply(RequestTemplate template) {
                String host = requests.getAndIncrement() < 3 ? "localhost" : "127.0.0.1";
                return template.target(server.url().replace("localhost", host)).request();
            }
        };
        Orders moving = IdempotentFeign.install(Feign.builder(), fast().build()).target(hosts);
        server.respond(Reply.status(504), Reply.status(504), Reply.status(504), Reply.ok("done"));
        assertThatThrownBy(() -> moving.create("x")).isInstanceOf(OutcomeUnknown.class);
        moving.create("x");
        assertThat(server.requests().get(3).header("Host").get(0)).startsWith("127.0.0.1");
        assertThat(repeats()).hasSize(1);
    }

    @Test
    void callWithAnotherBodyIsNoWarning() {
        endsUnknown();
        succeeds("y");
        assertThat(repeats()).isEmpty();
    }

    /** The warning said "under a new ID", and was spent. */
    @Test
    void handlerThatIsExecutedAgainIsNoWarningAsItsCallsKeepTheirIds() {
        inside(InboundRequest.of("request-1"), this::endsUnknown);
        inside(InboundRequest.of("request-1"), () -> succeeds("x"));
        assertThat(repeats()).isEmpty();
        endsUnknown();
        succeeds("x");
        assertThat(repeats()).hasSize(1);
    }

    @Test
    void secondEqualCallOfAHandlerIsAWarning() {
        inside(InboundRequest.of("request-1"), () -> {
            endsUnknown();
            succeeds("x");
        });
        assertThat(repeats()).singleElement().asString().contains("under a new ID");
    }
}
