package io.idempotence.it.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.it.container.UndertowServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ServletContext;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.BiPredicate;
import java.util.function.Consumer;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.Test;

/** Parameters, encodings and their errors are the container's: handlers see the same with this filter and without it. */
class ParametersIT extends FilterTestBase {
    private static final String FORM = "application/x-www-form-urlencoded";

    /** What a handler does with its request, and what it sees. */
    private enum Script {
        PARAMETERS,
        UTF_8_THEN_PARAMETERS,
        LATIN_1_THEN_PARAMETERS,
        UNKNOWN_ENCODING,
        READER,
        UTF_8_THEN_READER,
        PARAMETERS_THEN_STREAM,
        STREAM,
        STREAM_THEN_READER,
        IN_FRONT_UTF_8
    }

    private static String see(Script script, HttpServletRequest request) throws IOException {
        switch (script) {
            case UTF_8_THEN_PARAMETERS, UTF_8_THEN_READER -> request.setCharacterEncoding("UTF-8");
            case LATIN_1_THEN_PARAMETERS -> request.setCharacterEncoding("ISO-8859-1");
            case UNKNOWN_ENCODING -> {
                try {
                    request.setCharacterEncoding("no-such-encoding");
                } catch (IOException | RuntimeException e) {
                    return e.getClass().getName();
                }
            }
            default -> {}
        }
        String encoding = request.getCharacterEncoding() + " ";
        return switch (script) {
            case READER, UTF_8_THEN_READER ->
                encoding + request.getReader().lines().toList();
            case STREAM -> encoding + new String(request.getInputStream().readAllBytes(), "ISO-8859-1");
            case STREAM_THEN_READER -> {
                request.getInputStream();
                try {
                    request.getReader();
                    yield "both";
                } catch (IllegalStateException e) {
                    yield "one";
                }
            }
            case PARAMETERS_THEN_STREAM ->
                parameters(request) + request.getInputStream().readAllBytes().length;
            default -> encoding + parameters(request);
        };
    }

    private static String parameters(HttpServletRequest request) {
        StringBuilder seen = new StringBuilder();
        // Undertow keeps no order.
        for (String name : new TreeSet<>(Collections.list(request.getParameterNames()))) {
            seen.append(name)
                    .append(Arrays.toString(request.getParameterValues(name)))
                    .append(request.getParameter(name))
                    .append(' ');
        }
        return seen.append(request.getParameterMap().size()).toString();
    }

    private record Sent(String method, String query, String type, String body) {
        static Sent form(String body) {
            return new Sent("POST", "", FORM, body);
        }
    }

    private static final List<Sent> SENT = List.of(
            Sent.form("a=1&b=2&a=3"),
            Sent.form(""),
            Sent.form("a=Ren%C3%A9+x&%C3%BC=1"),
            Sent.form("a=Ren%E9"),
            Sent.form("a=Ren\u00e9"),
            Sent.form("a=%zz&b=1"),
            Sent.form("b=1&a=%4"),
            Sent.form("b=1&a=%"),
            Sent.form("a&b=&=c&&d=1"),
            Sent.form("a=b=c"),
            new Sent("POST", "?a=0&c=%C3%BC", FORM, "a=1"),
            new Sent("PUT", "?a=0", FORM, "a=1"),
            new Sent("PATCH", "?a=0", FORM, "a=1"),
            new Sent("POST", "", FORM + ";charset=utf-8", "a=Ren%C3%A9"),
            new Sent("POST", "", FORM + ";charset=iso-8859-1", "a=Ren%E9"),
            new Sent("POST", "", FORM + ";charset=windows-1252", "a=%80"),
            new Sent("POST", "", FORM + ";charset=@@", "a=1"),
            new Sent("POST", "", FORM + ";charset=no-such", "a=1"),
            new Sent("POST", "", "text/plain;charset=@@", "abc"),
            new Sent("POST", "", "text/plain", "Ren\u00c3\u00a9"),
            new Sent("POST", "?x=1", "application/json", "{\"a\":\"Ren\u00c3\u00a9\"}"),
            new Sent("POST", "?x=%zz", "text/plain", "abc"),
            Sent.form("a=1&".repeat(1000)),
            Sent.form("a=1&".repeat(1001)),
            Sent.form("a=1&".repeat(10001)));

    @Test
    void handlersSeeTheSameWithTheFilterAndWithout() {
        assertHandlersSeeTheSameIn(
                container, container == Container.JETTY ? ParametersIT::isOfJetty : ParametersIT::isOfTomcat10);
    }

    @Test
    void handlersInUndertowSeeTheSameWithTheFilterAndWithout() {
        // Once for both containers of this class, and only with the Servlet API that Undertow has.
        assumeThat(container == Container.TOMCAT && !ServletServer.isServlet61())
                .isTrue();
        assertHandlersSeeTheSameIn(UndertowServer::start, ParametersIT::isOfUndertow);
    }

    private void assertHandlersSeeTheSameIn(
            ServletServer.Starter starter, BiPredicate<Sent, Script> isKnownDifference) {
        Handler handler = (request, response) ->
                answer(response, 200, see(Script.valueOf(request.getHeader("X-Script")), request));
        ServletServer without = start(starter, handler, ParametersIT::encodingInFront);
        Idempotence idempotence = idempotence();
        ServletServer with = start(starter, handler, context -> {
            encodingInFront(context);
            IdempotenceFilter.builder(idempotence)
                    .methods("POST", "PUT", "PATCH")
                    .build()
                    .install(context);
        });
        SoftAssertions.assertSoftly(softly -> {
            for (Sent sent : SENT) {
                for (Script script : Script.values()) {
                    if (isKnownDifference.test(sent, script)) {
                        continue;
                    }
                    softly.assertThat(send(with, sent, script))
                            .as("%s %.200s", script, sent)
                            .isEqualTo(send(without, sent, script));
                }
            }
        });
    }

    /** What docs/filters.md advises: the container parses the parts before the handler could set an encoding. */
    @Test
    void textOfPartsHasTheEncodingThatTheApplicationSetsInAdvance() {
        multipart = new MultipartConfigElement("");
        Handler handler = (request, response) -> answer(response, 200, request.getParameter("a"));
        Idempotence idempotence = idempotence();
        Consumer<ServletContext> utf8 = context -> context.setRequestCharacterEncoding("UTF-8");
        Consumer<ServletContext> inFront = context -> inFront(context, (request, response, chain) -> {
            request.setCharacterEncoding("UTF-8");
            chain.doFilter(request, response);
        });
        List<ServletServer.Starter> starters = ServletServer.isServlet61()
                ? List.of(container)
                : List.<ServletServer.Starter>of(container, UndertowServer::start);
        String body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nRen\u00e9\r\n--b--\r\n";
        for (ServletServer.Starter starter : starters) {
            // Undertow decodes parts without a look at the application's default.
            for (Consumer<ServletContext> setting : starter == container ? List.of(utf8, inFront) : List.of(inFront)) {
                ServletServer server = start(starter, handler, context -> {
                    setting.accept(context);
                    IdempotenceFilter.install(context, idempotence);
                });
                String key = UUID.randomUUID().toString();
                assertThat(text(Http.post(
                                server.uri("/p"), key, body, "Content-Type", "multipart/form-data; boundary=b")))
                        .isEqualTo("Ren\u00e9");
            }
        }
    }

    /** Tomcat 10.1 leaves parameters beyond its limit out, and this filter refuses the form: see FormsIT. */
    private static boolean isOfTomcat10(Sent sent, Script script) {
        return !ServletServer.isServlet61() && sent.body.length() > 4 * 10_000;
    }

    /** Of a request whose charset is unknown, Jetty takes no better one from the handler once its body was read, and says 400. */
    private static boolean isOfJetty(Sent sent, Script script) {
        return sent.type.matches(".*charset=(@@|no-such)")
                && (script == Script.UTF_8_THEN_PARAMETERS || script == Script.LATIN_1_THEN_PARAMETERS);
    }

    /** Undertow logs a malformed parameter as a format, whose own failure is then the handler's. */
    private static boolean isOfUndertow(Sent sent, Script script) {
        return sent.body.matches(".*%(zz|4|)(&.*)?");
    }

    private static void encodingInFront(ServletContext context) {
        inFront(context, (request, response, chain) -> {
            if ("IN_FRONT_UTF_8".equals(((HttpServletRequest) request).getHeader("X-Script"))) {
                request.setCharacterEncoding("UTF-8");
            }
            chain.doFilter(request, response);
        });
    }

    private static String send(ServletServer server, Sent sent, Script script) {
        String response = Http.raw(
                server.port(),
                sent.method + " /p" + sent.query + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: "
                        + UUID.randomUUID() + "\r\nX-Script: " + script + "\r\nContent-Type: " + sent.type
                        + "\r\nContent-Length: " + sent.body.length() + "\r\n\r\n" + sent.body);
        String status = response.substring(9, 12);
        assertThat(status).containsOnlyDigits();
        return status.equals("200") ? response.substring(response.indexOf("\r\n\r\n") + 4) : status;
    }
}
