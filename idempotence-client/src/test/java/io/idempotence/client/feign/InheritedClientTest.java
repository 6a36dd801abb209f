package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.RequestLine;
import feign.Target.HardCodedTarget;
import io.idempotence.Idempotent;
import io.idempotence.client.feign.TestServer.Reply;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Interfaces that extend others, and which of their calls carry an ID by the annotations along the way. */
class InheritedClientTest extends FeignTestBase {
    interface Base {
        @RequestLine("POST /post")
        String post();

        @RequestLine("PUT /put")
        String put(String body);

        @RequestLine("DELETE /delete")
        String delete();

        @RequestLine("GET /get")
        String get();

        @Idempotent(false)
        @RequestLine("POST /never")
        String never();

        /** The other attributes are those of the handler that shares the interface. */
        @Idempotent(required = false, retention = "as the handler says", releaseOn = IllegalStateException.class)
        @RequestLine("PUT /always")
        String always(String body);

        default String both() {
            return post() + put("x");
        }
    }

    interface Plain extends Base {}

    @Idempotent
    interface Protected extends Base {}

    interface Extending extends Protected {
        @Override
        @RequestLine("PUT /put")
        String put(String body);
    }

    @Idempotent(false)
    interface Unprotected extends Base {}

    @Idempotent
    interface Overriding extends Base {
        @Override
        @Idempotent
        @RequestLine("POST /never")
        String never();

        @Override
        @Idempotent(false)
        @RequestLine("DELETE /delete")
        String delete();
    }

    interface Redeclaring extends Base {
        @Override
        @RequestLine("POST /never")
        String never();

        @Override
        @RequestLine("PUT /always")
        String always(String body);
    }

    private <T extends Base> List<Boolean> carried(Class<T> type) {
        int before = server.requests().size();
        T client = client(type);
        client.post();
        client.put("x");
        client.delete();
        client.get();
        client.never();
        client.always("x");
        return server.ids().subList(before, before + 6).stream()
                .map(id -> !id.isEmpty())
                .toList();
    }

    private <T> T client(Class<T> type) {
        return IdempotentFeign.install(Feign.builder(), fast().build())
                .target(new HardCodedTarget<>(type, "orders", server.url()));
    }

    @Test
    void annotationsOfMethodsAndInterfacesDecideAlsoWhenInherited() {
        //                                                post   put    delete get    never  always
        assertThat(carried(Base.class)).containsExactly(true, false, false, false, false, true);
        assertThat(carried(Plain.class)).containsExactly(true, false, false, false, false, true);
        assertThat(carried(Protected.class)).containsExactly(true, true, true, false, false, true);
        assertThat(carried(Extending.class)).containsExactly(true, true, true, false, false, true);
        assertThat(carried(Unprotected.class)).containsExactly(false, false, false, false, false, true);
        assertThat(carried(Redeclaring.class)).containsExactly(true, false, false, false, false, true);
        assertThat(carried(Overriding.class)).containsExactly(true, true, false, false, true, true);
    }

    /** Without an argument there is no array of them to tell a call by. */
    @Test
    void inheritedMethodsWithoutArgumentsKeepTheirIdsOnEveryAttempt() {
        server.respond(Reply.status(503), Reply.status(500), Reply.ok("ok"), Reply.status(503));
        Plain plain = client(Plain.class);
        plain.post();
        plain.post();
        assertThat(Set.copyOf(server.ids().subList(0, 3))).hasSize(1);
        assertThat(Set.copyOf(server.ids().subList(3, 5))).hasSize(1);
        assertThat(Set.copyOf(server.ids())).hasSize(2);
    }

    @Test
    void inheritedDefaultMethodIsNoCallAndItsCallsAre() {
        server.respond(Reply.status(503));
        assertThat(client(Protected.class).both()).isEqualTo("okok");
        assertThat(server.ids()).doesNotContain("").hasSize(3);
        assertThat(Set.copyOf(server.ids())).hasSize(2);
        assertThat(events).hasSize(2);
    }
}
