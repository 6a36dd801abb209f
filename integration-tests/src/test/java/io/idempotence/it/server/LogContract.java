package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.EnumSet;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;

/** The ID is in the MDC wherever a handler runs, and in no other request's. */
abstract class LogContract {
    private static final String KEY = "idempotenceId";

    private final Idempotence idempotence = Idempotence.over(IdempotenceStorage.inMemory());
    private final String id = UUID.randomUUID().toString();

    /** What the container's threads had before and after each dispatch, as a filter in front sees it. */
    private final List<String> around = new CopyOnWriteArrayList<>();

    private ServletServer server;

    abstract ServletServer.Starter starter();

    @AfterEach
    void close() {
        server.close();
        idempotence.close();
        assertThat(around).isNotEmpty().allMatch("nothing"::equals);
    }

    @Test
    void handlerSeesItsId() {
        serve((request, response) -> respond(response));

        assertThat(responseTo(id)).isEqualTo(id);
        String other = UUID.randomUUID().toString();
        assertThat(responseTo(other)).isEqualTo(other);
    }

    @Test
    void handlerThatFailsLeavesNothingBehind() {
        serve((request, response) -> {
            throw new IllegalStateException("for the test");
        });

        assertThat(post(server.uri("/orders"), id, "{}").statusCode()).isEqualTo(500);
    }

    @Test
    void asyncDispatchSeesItsId() {
        serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                respond(response);
            } else {
                request.startAsync().dispatch();
            }
        });

        assertThat(responseTo(id)).isEqualTo(id);
        await("before and after two dispatches").until(() -> around.size() == 4);
    }

    @Test
    void taskOnAThreadOfTheContainerSeesItsId() {
        serve((request, response) -> {
            AsyncContext async = request.startAsync();
            async.start(() -> {
                respond((HttpServletResponse) async.getResponse());
                async.complete();
            });
        });

        assertThat(responseTo(id)).isEqualTo(id);
    }

    private String responseTo(String which) {
        return text(post(server.uri("/orders"), which, "{}"));
    }

    private static void respond(HttpServletResponse response) {
        try {
            response.getWriter().write(String.valueOf(MDC.get(KEY)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void serve(Handler handler) {
        server = starter()
                .start(
                        context -> {
                            Filter outside = (request, response, chain) -> {
                                around.add(present());
                                try {
                                    chain.doFilter(request, response);
                                } finally {
                                    around.add(present());
                                }
                            };
                            FilterRegistration.Dynamic first = context.addFilter("outside", outside);
                            first.setAsyncSupported(true);
                            first.addMappingForUrlPatterns(
                                    EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC), true, "/*");
                            IdempotenceFilter.install(context, idempotence, "/*");
                            ServletRegistration.Dynamic servlet =
                                    context.addServlet("handler", ServletServer.servlet(handler));
                            servlet.setAsyncSupported(true);
                            servlet.addMapping("/orders");
                        },
                        null);
    }

    private static String present() {
        String there = MDC.get(KEY);
        return there == null ? "nothing" : there;
    }
}
