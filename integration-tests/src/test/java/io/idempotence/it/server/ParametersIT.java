package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.BiPredicate;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.Test;

/** Parameters, encodings and their errors, which are the container's: handlers see the same with this filter and without it. */
class ParametersIT extends FilterTestBase {
    private static final String FORM = "application/x-www-form-urlencoded";

    /** The steps of a handler with its request, and what it sees. */
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
        IN_FRONT_UTF_8,
        IN_FRONT_UTF_8_THEN_LATIN_1,
        IN_FRONT_PARAMETER,
        PARTS,
        UTF_8_THEN_PARTS,
        LATIN_1_THEN_PARTS,
        PARAMETERS_THEN_UTF_8,
        PARTS_THEN_UTF_8;

        private static final Set<Script> OF_FORMS = EnumSet.range(PARAMETERS, IN_FRONT_UTF_8);
        /** The container parses parts before: the body itself is gone then. */
        private static final Set<Script> OF_PARTS = EnumSet.complementOf(
                EnumSet.of(READER, UTF_8_THEN_READER, PARAMETERS_THEN_STREAM, STREAM, STREAM_THEN_READER));
    }

    private static String see(Script script, HttpServletRequest request) throws IOException, ServletException {
        switch (script) {
            case UTF_8_THEN_PARAMETERS, UTF_8_THEN_READER, UTF_8_THEN_PARTS -> request.setCharacterEncoding("UTF-8");
            case LATIN_1_THEN_PARAMETERS, LATIN_1_THEN_PARTS, IN_FRONT_UTF_8_THEN_LATIN_1 ->
                request.setCharacterEncoding("ISO-8859-1");
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
            case STREAM -> encoding + new String(request.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
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
            case PARTS, UTF_8_THEN_PARTS, LATIN_1_THEN_PARTS -> encoding + parts(request) + parameters(request);
            case PARAMETERS_THEN_UTF_8 -> {
                String before = parameters(request);
                request.setCharacterEncoding("UTF-8");
                yield encoding + before + parameters(request);
            }
            case PARTS_THEN_UTF_8 -> {
                String before = parts(request);
                request.setCharacterEncoding("UTF-8");
                yield encoding + before + parts(request) + parameters(request);
            }
            default -> encoding + parameters(request);
        };
    }

    private static String parts(HttpServletRequest request) throws IOException, ServletException {
        StringBuilder seen = new StringBuilder();
        List<Part> parts = new ArrayList<>(request.getParts());
        // Undertow keeps no order.
        parts.sort(Comparator.comparing(Part::getName));
        for (Part part : parts) {
            seen.append(part.getName())
                    .append('/')
                    .append(part.getSubmittedFileName())
                    .append('/')
                    .append(part.getContentType())
                    .append('/')
                    .append(part.getHeader("Content-Disposition"))
                    .append('/')
                    .append(part.getHeaders("Content-Disposition"))
                    .append('/')
                    .append(part.getSize())
                    .append('/')
                    .append(new String(part.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1))
                    .append('/')
                    .append(request.getPart(part.getName()).getSize())
                    .append(' ');
        }
        return seen.toString();
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
            // Jetty takes time that grows with the square of the number of values of a name.
            Sent.form(IntStream.range(0, 10001)
                    .mapToObj(i -> "a" + i % 100 + "=1&")
                    .collect(Collectors.joining())));

    @Test
    void handlersSeeTheSameWithTheFilterAndWithout() {
        assertHandlersSeeTheSame(
                SENT,
                Script.OF_FORMS,
                switch (container) {
                    case TOMCAT -> ParametersIT::isOfTomcat10;
                    case JETTY -> ParametersIT::isOfJetty;
                    case UNDERTOW -> ParametersIT::isOfUndertow;
                });
    }

    private static Sent parts(String query, String type, String... parts) {
        return new Sent(
                "POST",
                query,
                "multipart/form-data; boundary=b" + type,
                "--b\r\nContent-Disposition: form-data; name="
                        + String.join("\r\n--b\r\nContent-Disposition: form-data; name=", parts) + "\r\n--b--\r\n");
    }

    private static final List<Sent> SENT_PARTS = List.of(
            parts("?a=1&a=2", "", "\"a\"\r\n\r\n1"),
            parts("", "", "\"a\"\r\n\r\n1", "\"b\"\r\n\r\n2", "\"a\"\r\n\r\n3"),
            parts("?a=0&c=1", "", "\"a\"\r\n\r\n\u00c3\u00a9", "\"b\"\r\n\r\n\u00c3\u00a9"),
            parts("", "", "\"a\"\r\n\r\nRen\u00c3\u00a9", "\"b\"\r\n\r\nRen\u00e9"),
            parts("", ";charset=utf-8", "\"a\"\r\n\r\nRen\u00c3\u00a9"),
            parts("", ";charset=iso-8859-1", "\"a\"\r\n\r\nRen\u00e9"),
            parts("", "", "\"a\"\r\nContent-Type: text/plain;charset=utf-8\r\n\r\nRen\u00c3\u00a9"),
            parts("", "", "\"a\"\r\nContent-Type: text/plain;charset=iso-8859-1\r\n\r\nRen\u00e9"),
            parts("", "", "\"a\"\r\nContent-Type: text/plain;charset=utf-16\r\n\r\n\u00fe\u00ff\u0000R"),
            parts("", "", "\"_charset_\"\r\n\r\niso-8859-1", "\"a\"\r\n\r\nRen\u00e9"),
            parts("", "", "\"R\u00c3\u00a9\"\r\n\r\n1"),
            parts("?R%C3%A9=0", "", "\"R\u00c3\u00a9\"\r\n\r\n1"),
            parts("", "", "\"f\"; filename=\"R\u00c3\u00a9.txt\"\r\nContent-Type: text/plain\r\n\r\nRen\u00c3\u00a9"),
            parts("", "", "\"f\"; filename=\"f.bin\"\r\n\r\nRen\u00c3\u00a9", "\"a\"\r\n\r\n\u00c3\u00a9"));

    @Test
    void handlersSeeTheSamePartsWithTheFilterAndWithout() {
        multipart = new MultipartConfigElement("");
        assertHandlersSeeTheSame(
                SENT_PARTS,
                Script.OF_PARTS,
                switch (container) {
                    case TOMCAT -> ParametersIT::isOfTomcatsParts;
                    case JETTY -> (sent, script) -> false;
                    case UNDERTOW -> ParametersIT::isOfUndertowsParts;
                });
    }

    private void assertHandlersSeeTheSame(
            List<Sent> all, Set<Script> scripts, BiPredicate<Sent, Script> isKnownDifference) {
        Handler handler = (request, response) ->
                respond(response, 200, see(Script.valueOf(request.getHeader("X-Script")), request));
        ServletServer without = start(handler, ParametersIT::encodingInFront);
        Idempotence idempotence = idempotence();
        ServletServer with = start(handler, context -> {
            encodingInFront(context);
            IdempotenceFilter.builder(idempotence)
                    .methods("POST", "PUT", "PATCH")
                    .build()
                    .install(context);
        });
        SoftAssertions.assertSoftly(softly -> {
            for (Sent sent : all) {
                for (Script script : scripts) {
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

    /** Copies of all parameters for each one that is read take time that grows with the square of their number. */
    @Test
    void readingEachParameterOfALargeFormCopiesNoOthers() {
        int parameters = 2000;
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        Handler handler = (request, response) -> {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < parameters; i++) {
                assertThat(request.getParameter("a" + i).length() + request.getParameterValues("a" + i).length)
                        .isEqualTo(2);
            }
            respond(response, 200, String.valueOf(threads.getCurrentThreadAllocatedBytes() - before));
        };
        ServletServer server = serve(handler, filter -> filter.maxFormParameters(2 * parameters));
        String form =
                IntStream.range(0, parameters).mapToObj(i -> "a" + i + "=1").collect(Collectors.joining("&"));
        HttpResponse<byte[]> response = post(server.uri("/p?q=1"), id, form, "Content-Type", FORM);
        assertThat(Long.parseLong(text(response))).isLessThan(30_000_000);
    }

    @Test
    void textOfPartsHasTheEncodingThatTheApplicationSetsInAdvance() {
        multipart = new MultipartConfigElement("");
        Handler handler = (request, response) -> respond(response, 200, request.getParameter("a"));
        Idempotence idempotence = idempotence();
        Consumer<ServletContext> utf8 = context -> context.setRequestCharacterEncoding("UTF-8");
        Consumer<ServletContext> inFront = context -> inFront(context, (request, response, chain) -> {
            request.setCharacterEncoding("UTF-8");
            chain.doFilter(request, response);
        });
        String body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nRen\u00e9\r\n--b--\r\n";
        // Undertow decodes parts without a look at the application's default.
        for (Consumer<ServletContext> setting :
                container == Container.UNDERTOW ? List.of(inFront) : List.of(utf8, inFront)) {
            ServletServer server = start(handler, context -> {
                setting.accept(context);
                IdempotenceFilter.install(context, idempotence);
            });
            String key = UUID.randomUUID().toString();
            assertThat(text(Http.post(server.uri("/p"), key, body, "Content-Type", "multipart/form-data; boundary=b")))
                    .isEqualTo("Ren\u00e9");
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

    /** Whether the first 1 or the last one is that of the part, nobody can say if a filter in front may have read parameters. */
    private static boolean isOfTomcatsParts(Sent sent, Script script) {
        return sent.query.equals("?a=1&a=2") && script == Script.IN_FRONT_PARAMETER;
    }

    /**
     * Undertow keeps the text of a part, not its bytes: what cannot be decoded in the first encoding is lost for the second one, and two
     * such requests cannot be told apart.
     */
    private static boolean isOfUndertowsParts(Sent sent, Script script) {
        return sent.body.contains("Ren\u00e9")
                && (script == Script.UTF_8_THEN_PARTS
                        || script == Script.IN_FRONT_UTF_8
                        || script == Script.IN_FRONT_UTF_8_THEN_LATIN_1);
    }

    private static void encodingInFront(ServletContext context) {
        inFront(context, (request, response, chain) -> {
            if (((HttpServletRequest) request).getHeader("X-Script").startsWith("IN_FRONT_UTF_8")) {
                request.setCharacterEncoding("UTF-8");
            } else if (((HttpServletRequest) request).getHeader("X-Script").equals("IN_FRONT_PARAMETER")) {
                request.getParameter("a");
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
