package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;

/** Forms whose parameters other filters change, and forms that are too large. */
class FormsIT extends FilterTestBase {
    private static final String FORM = "application/x-www-form-urlencoded";

    /** A request that sanitises parameters, as filters against cross-site scripting do, and hides one. */
    private static final class Sanitised extends HttpServletRequestWrapper {
        Sanitised(HttpServletRequest request) {
            super(request);
        }

        private static String sanitised(String value) {
            return value.replaceAll("[<>]", "").toUpperCase(Locale.ROOT);
        }

        @Override
        public String getParameter(String name) {
            String value = super.getParameter(name);
            return value == null ? null : sanitised(value);
        }

        @Override
        public String[] getParameterValues(String name) {
            return getParameterMap().get(name);
        }

        @Override
        public Enumeration<String> getParameterNames() {
            return Collections.enumeration(getParameterMap().keySet());
        }

        @Override
        public Map<String, String[]> getParameterMap() {
            Map<String, String[]> all = new LinkedHashMap<>(super.getParameterMap());
            all.remove("secret");
            all.replaceAll((name, values) -> {
                String[] clean = values.clone();
                for (int i = 0; i < clean.length; i++) {
                    clean[i] = sanitised(clean[i]);
                }
                return clean;
            });
            return all;
        }
    }

    private static String seen(HttpServletRequest request) {
        return new TreeSet<>(Collections.list(request.getParameterNames()))
                + request.getParameterMap().entrySet().stream()
                        .sorted(Map.Entry.comparingByKey())
                        .map(entry -> entry.getKey() + String.join(",", entry.getValue()))
                        .collect(Collectors.joining(";"))
                + request.getParameter("a")
                + String.join(",", request.getParameterValues("a"));
    }

    @Test
    void filterInFrontThatOverridesParametersStillDecidesInForms() {
        Handler handler = (request, response) -> {
            request.setCharacterEncoding("UTF-8");
            respond(response, 200, seen(request));
        };
        ServletServer without = start(
                handler,
                context -> inFront(context, (request, response, chain) -> {
                    chain.doFilter(new Sanitised((HttpServletRequest) request), response);
                }));
        ServletServer with = serveBehind(
                (request, response, chain) -> {
                    chain.doFilter(new Sanitised((HttpServletRequest) request), response);
                },
                handler);
        String body = "a=%3Cscript%3E&b=Ren%C3%A9&secret=x&a=2";
        String expected = text(post(without.uri("/p?q=1"), id, body, "Content-Type", FORM));
        assertThat(expected).contains("SCRIPT").doesNotContain("secret");
        assertThat(text(post(with.uri("/p?q=1"), id, body, "Content-Type", FORM)))
                .isEqualTo(expected);
    }

    @Test
    void filterInFrontThatOverridesParametersStillDecidesInParts() {
        multipart = new MultipartConfigElement("");
        Handler handler = (request, response) -> {
            request.setCharacterEncoding("ISO-8859-1");
            respond(response, 200, seen(request));
        };
        Filter sanitising = (request, response, chain) -> {
            request.setCharacterEncoding("UTF-8");
            chain.doFilter(new Sanitised((HttpServletRequest) request), response);
        };
        ServletServer without = start(handler, context -> inFront(context, sanitising));
        ServletServer with = serveBehind(sanitising, handler);
        String body = """
                --b\r
                Content-Disposition: form-data; name="a"\r
                \r
                <script>Ren\u00e9\r
                --b\r
                Content-Disposition: form-data; name="secret"\r
                \r
                x\r
                --b--\r
                """;
        String type = "multipart/form-data; boundary=b";
        String expected = text(post(without.uri("/p?q=1"), id, body, "Content-Type", type));
        assertThat(expected).contains("SCRIPT").doesNotContain("secret");
        assertThat(text(post(with.uri("/p?q=1"), id, body, "Content-Type", type)))
                .isEqualTo(expected);
    }

    /** A request that reads parameters from a field of its own instead of its superclass. */
    private static final class PastItsSuperclass extends HttpServletRequestWrapper {
        private final HttpServletRequest own;

        PastItsSuperclass(HttpServletRequest own) {
            super(own);
            this.own = own;
        }

        @Override
        public String getParameter(String name) {
            return own.getParameter(name);
        }

        @Override
        public String[] getParameterValues(String name) {
            return own.getParameterValues(name);
        }

        @Override
        public Enumeration<String> getParameterNames() {
            return own.getParameterNames();
        }

        @Override
        public Map<String, String[]> getParameterMap() {
            return own.getParameterMap();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"parameter", "values", "names", "map"})
    void filterInFrontThatMissesAFormIsWarnedOfOnce(String asked) {
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    HttpServletRequest http = (HttpServletRequest) request;
                    boolean isPast = http.getRequestURI().equals("/past");
                    chain.doFilter(isPast ? new PastItsSuperclass(http) : new Sanitised(http), response);
                },
                (request, response) -> respond(
                        response,
                        200,
                        switch (asked) {
                            case "parameter" -> request.getParameter("a") + request.getParameter("q");
                            case "values" -> Arrays.toString(request.getParameterValues("a"));
                            case "names" -> Collections.list(request.getParameterNames()) + "";
                            default -> request.getParameterMap().keySet() + "";
                        }));
        List<String> warnings = warnings(() -> {
            post(server.uri("/sanitised?q=1"), "sanitised", "a=1&secret=2", "Content-Type", FORM);
            post(server.uri("/past?q=1"), "text", "a=1", "Content-Type", "text/plain");
            post(server.uri("/past?q=1"), "other", "q=1", "Content-Type", "text/plain");
            post(server.uri("/past?q=1"), "first", "a=1", "Content-Type", FORM);
            post(server.uri("/past?q=1"), "second", "a=1", "Content-Type", FORM);
        });
        assertThat(warnings).hasSize(1);
        assertThat(warnings.get(0)).contains(PastItsSuperclass.class.getName(), "super");
    }

    private static List<String> warnings(Runnable work) {
        Logger logger = (Logger) LoggerFactory.getLogger(IdempotenceFilter.class);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.addAppender(log);
        logger.setAdditive(false);
        logger.setLevel(Level.WARN);
        try {
            work.run();
        } finally {
            logger.setLevel(null);
            logger.setAdditive(true);
            logger.detachAppender(log);
        }
        return log.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
    }

    /** A request that adds one parameter and hides another, whatever the form contains. */
    private static final class WithTenant extends HttpServletRequestWrapper {
        WithTenant(HttpServletRequest request) {
            super(request);
        }

        @Override
        public String getParameter(String name) {
            return switch (name) {
                case "tenant" -> "acme";
                case "secret" -> null;
                default -> super.getParameter(name);
            };
        }
    }

    private static String read(String step, HttpServletRequest request) throws IOException {
        return switch (step) {
            case "stream" -> text(request);
            case "reader" -> request.getReader().readLine();
            case "utf-8" -> {
                request.setCharacterEncoding("UTF-8");
                yield "";
            }
            default -> request.getParameter(step);
        };
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "tenant,stream",
                "stream,tenant,a",
                "secret,stream",
                "secret,reader",
                "stream,secret",
                "tenant,utf-8,a",
                "utf-8,tenant,a",
                "secret,utf-8,a",
                "utf-8,secret,a",
                "tenant,a,stream"
            })
    void filterInFrontThatDoesNotAskForTheFormTookItFromTheHandler(String steps) {
        Handler handler = (request, response) -> {
            List<String> seen = new ArrayList<>();
            for (String step : steps.split(",")) {
                seen.add(read(step, request));
            }
            respond(response, 200, seen + "");
        };
        Filter tenants =
                (request, response, chain) -> chain.doFilter(new WithTenant((HttpServletRequest) request), response);
        List<String> bodies = List.of("a=Ren%C3%A9&secret=2", form(11_000) + "&secret=1");
        ServletServer without = start(handler, context -> inFront(context, tenants));
        Idempotence idempotence = idempotence();
        ServletServer with = start(handler, context -> {
            inFront(context, tenants);
            IdempotenceFilter.install(context, idempotence);
        });
        // A handler that asks for a parameter of a form that is too large gets an error: see the last test.
        for (String body : steps.contains("a,") || steps.endsWith("a") ? bodies.subList(0, 1) : bodies) {
            String key = UUID.randomUUID().toString();
            HttpResponse<byte[]> expected = post(without.uri("/p"), key, body, "Content-Type", FORM);
            HttpResponse<byte[]> actual = post(with.uri("/p"), key, body, "Content-Type", FORM);
            assertThat(text(actual)).isEqualTo(text(expected));
            assertThat(actual.statusCode()).isEqualTo(200);
        }
    }

    @Test
    void handlerReadsTheBodyOfAFormBehindAFilterThatOverridesParameters() {
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    chain.doFilter(new Sanitised((HttpServletRequest) request), response);
                },
                (request, response) -> respond(response, 200, text(request)));
        assertThat(text(post(server.uri("/p"), id, "a=<b>", "Content-Type", FORM)))
                .isEqualTo("a=<b>");
    }

    @ParameterizedTest
    @ValueSource(strings = {"asked", "not asked", "released", "thrown", "read"})
    void formParametersVanishedOnErrorPages(String how) {
        errorPage = "/error";
        Handler handler = (request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ERROR) {
                response.getWriter().print("a=" + request.getParameter("a") + " q=" + request.getParameter("q"));
                return;
            }
            switch (how) {
                case "asked" -> assertThat(request.getParameter("a")).isEqualTo("1");
                case "read" -> request.getInputStream().readAllBytes();
                case "thrown" -> throw new IllegalStateException("as the test asks");
                default -> {}
            }
            response.sendError(how.equals("released") ? 503 : 422);
        };
        ServletServer without = start(handler, context -> {});
        Idempotence idempotence = idempotence();
        ServletServer with = start(handler, context -> IdempotenceFilter.install(context, idempotence));
        // Jetty runs no error page for an exception if the body has not arrived yet.
        String expected = await().until(
                        () -> text(post(without.uri("/p?q=2"), id, "a=1&b=2", "Content-Type", FORM)),
                        page -> !page.isEmpty());
        // Jetty drops a form that the handler has not asked for.
        if (how.equals("asked")) {
            assertThat(expected).isEqualTo("a=1 q=2");
        }
        assertThat(text(post(with.uri("/p?q=2"), id, "a=1&b=2", "Content-Type", FORM)))
                .isEqualTo(expected);
    }

    @Test
    void filterInFrontThatReadsAFormBeforeTheHandlerStillHasItAfterwards() {
        List<String> seen = new CopyOnWriteArrayList<>();
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    seen.add("before " + request.getParameter("a"));
                    chain.doFilter(request, response);
                    seen.add("after " + request.getParameter("a"));
                },
                (request, response) -> respond(response, 200, request.getParameter("a")));
        assertThat(text(post(server.uri("/p"), id, "a=1", "Content-Type", FORM)))
                .isEqualTo("1");
        await().until(() -> seen.size() == 2);
        assertThat(seen).containsExactly("before 1", "after 1");
    }

    @Test
    void forwardAddsItsParametersToThoseOfAForm() {
        Handler handler = (request, response) -> {
            if (request.getRequestURI().equals("/p")) {
                assertThat(request.getParameter("a")).isEqualTo("1");
                request.getRequestDispatcher("/next?b=2").forward(request, response);
            } else {
                respond(response, 200, request.getParameter("a") + request.getParameter("b"));
            }
        };
        ServletServer without = start(handler, context -> {});
        ServletServer with = serve(handler);
        String expected = text(post(without.uri("/p"), id, "a=1", "Content-Type", FORM));
        assertThat(text(post(with.uri("/p"), id, "a=1", "Content-Type", FORM))).isEqualTo(expected);
    }

    @ParameterizedTest
    @ValueSource(ints = {199_990, 200_010, (2 << 20) - 10, (2 << 20) + 10})
    void formBeyondTheSizeThatTheContainerParsesIsRefused(int size) {
        Handler handler = (request, response) ->
                respond(response, 200, String.valueOf(request.getParameter("a")).length() + "");
        ServletServer without = start(handler, context -> {});
        ServletServer with = serve(handler);
        String body = "a=" + "x".repeat(size - 2);
        int expected = status(without, body);
        // Tomcat 10.1 leaves all parameters out, which no handler notices.
        boolean leavesOut = container == Container.TOMCAT && !ServletServer.isServlet61() && size > 2 << 20;
        assertThat(status(with, body)).isEqualTo(leavesOut ? 413 : expected);
    }

    /** A container that refuses a form unread may cut the connection before its response has been read. */
    private int status(ServletServer server, String form) {
        return await().ignoreException(UncheckedIOException.class)
                .until(
                        () -> post(server.uri("/p"), id, form, "Content-Type", FORM)
                                .statusCode(),
                        code -> true);
    }

    private static String form(int parameters) {
        return IntStream.range(0, parameters).mapToObj(i -> "a" + i + "=1").collect(Collectors.joining("&"));
    }

    @Test
    void noParameterOfALargeFormIsLeftOutSilently() {
        Handler handler = (request, response) ->
                respond(response, 200, request.getParameterMap().size() + "");
        boolean isTomcat10 = container == Container.TOMCAT && !ServletServer.isServlet61();
        int most = isTomcat10 ? 10_000 : 1000;
        ServletServer byDefault = serve(handler);
        assertThat(text(post(byDefault.uri("/p"), "k1", form(most), "Content-Type", FORM)))
                .isEqualTo(most + "");
        assertThat(post(byDefault.uri("/p"), "k2", form(most + 1), "Content-Type", FORM)
                        .statusCode())
                .isEqualTo(container == Container.UNDERTOW ? 500 : 400);
        ServletServer more =
                serve(handler, filter -> filter.maxFormParameters(2000).maxFormSize(1 << 20));
        assertThat(text(post(more.uri("/p"), "k3", form(2000), "Content-Type", FORM)))
                .isEqualTo("2000");
    }
}
