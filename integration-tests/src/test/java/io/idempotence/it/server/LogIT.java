package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
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
class LogIT extends FilterTestBase {
    private static final String KEY = "idempotenceId";

    /** What the container's threads had before and after each dispatch, as a filter in front sees it. */
    private final List<String> around = new CopyOnWriteArrayList<>();

    private ServletServer server;

    @Override
    @AfterEach
    void closeAll() throws Exception {
        super.closeAll();
        assertThat(around).isNotEmpty().allMatch("nothing"::equals);
    }

    @Test
    void handlerSeesItsId() {
        begin((request, response) -> respond(response));

        assertThat(responseTo(id)).isEqualTo(id);
        String other = UUID.randomUUID().toString();
        assertThat(responseTo(other)).isEqualTo(other);
    }

    @Test
    void handlerThatFailsLeavesNothingBehind() {
        begin((request, response) -> {
            throw new IllegalStateException("for the test");
        });

        assertThat(call(server).statusCode()).isEqualTo(500);
    }

    @Test
    void asyncDispatchSeesItsId() {
        begin((request, response) -> {
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
        begin((request, response) -> {
            AsyncContext async = request.startAsync();
            async.start(() -> {
                respond((HttpServletResponse) async.getResponse());
                async.complete();
            });
        });

        assertThat(responseTo(id)).isEqualTo(id);
    }

    private String responseTo(String which) {
        return text(post(server.uri("/payments"), which, "{}"));
    }

    private static void respond(HttpServletResponse response) {
        try {
            response.getWriter().write(String.valueOf(MDC.get(KEY)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void begin(Handler handler) {
        Idempotence idempotence = idempotence();
        server = start(handler, context -> {
            FilterRegistration.Dynamic first = context.addFilter("outside", (request, response, chain) -> {
                around.add(present());
                try {
                    chain.doFilter(request, response);
                } finally {
                    around.add(present());
                }
            });
            first.setAsyncSupported(true);
            first.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC), true, "/*");
            IdempotenceFilter.install(context, idempotence);
        });
    }

    private static String present() {
        String there = MDC.get(KEY);
        return there == null ? "nothing" : there;
    }
}
