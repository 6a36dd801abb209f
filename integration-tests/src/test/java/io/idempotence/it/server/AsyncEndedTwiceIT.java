package io.idempotence.it.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Handlers that end their asynchronous processing twice. */
class AsyncEndedTwiceIT extends FilterTestBase {
    private final List<String> thrown = new CopyOnWriteArrayList<>();

    private static void end(AsyncContext async, String how) {
        if (how.equals("complete")) {
            async.complete();
        } else {
            async.dispatch();
        }
    }

    private Handler endingTwice(String first, String second, boolean elsewhere) {
        return (request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                respond(response, 200, "dispatched");
                return;
            }
            AsyncContext async = request.startAsync();
            Consumer<AsyncContext> ends = context -> {
                if (first.equals("complete")) {
                    respond(context, 200, "completed");
                }
                end(context, first);
                try {
                    end(context, second);
                    thrown.add("nothing");
                } catch (RuntimeException e) {
                    thrown.add(e.getClass().getName());
                }
            };
            if (elsewhere) {
                CompletableFuture.runAsync(() -> ends.accept(async), executor).join();
            } else {
                ends.accept(async);
            }
        };
    }

    /** The first caller got a 500 in Tomcat, and an empty 200 in Jetty. The replay was an empty 200. */
    @ParameterizedTest
    @CsvSource({
        "complete,dispatch,false", "complete,dispatch,true", "dispatch,complete,false", "dispatch,complete,true",
        "complete,complete,false", "complete,complete,true", "dispatch,dispatch,false", "dispatch,dispatch,true"
    })
    void secondEndIsRefusedAndTheResponseIsThatOfTheFirst(String first, String second, boolean elsewhere) {
        ServletServer plain = start(endingTwice(first, second, elsewhere), context -> {});
        HttpResponse<byte[]> expected = call(plain);
        List<String> expectedThrown = List.copyOf(thrown);
        thrown.clear();
        runs.set(0);

        ServletServer server = serve(endingTwice(first, second, elsewhere));
        HttpResponse<byte[]> found = call(server);

        assertThat(found.statusCode()).isEqualTo(200);
        assertThat(text(found)).isEqualTo(text(expected)).isNotEmpty();
        awaitReplay(server, found);
        assertThat(runs).hasValue(1);
        // Undertow refuses few of them.
        if (!second.equals(first) && container != Container.UNDERTOW) {
            assertThat(thrown).isEqualTo(expectedThrown).containsExactly("java.lang.IllegalStateException");
        }
    }
}
