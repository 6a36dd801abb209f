package io.idempotence.spring.actuate;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.spring.form.FormTokens;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.util.AntPathMatcher;
import org.springframework.web.HttpRequestHandler;
import org.springframework.web.util.HtmlUtils;

/**
 * The console. A GET shows; the only POST resolves one record, and only with a token of a form that this user got in this session. Not an
 * annotated controller, so that no exception handler or interceptor of the application takes part.
 */
final class ConsoleHandler implements HttpRequestHandler {
    private static final int PAGE = 100;

    private final Supplier<IdempotenceAdmin> admin;
    private final ConsoleProperties properties;
    private final EventHistory history;
    private final UncertainCalls calls;
    private final Consumer<HttpServletRequest> access;

    /** @param access checks who may open the page, and throws what the application's security turns into a login page or a 403 */
    ConsoleHandler(
            Supplier<IdempotenceAdmin> admin,
            ConsoleProperties properties,
            EventHistory history,
            UncertainCalls calls,
            Consumer<HttpServletRequest> access) {
        this.admin = admin;
        this.properties = properties;
        this.history = history;
        this.calls = calls;
        this.access = access;
    }

    @Override
    public void handleRequest(HttpServletRequest request, HttpServletResponse response) throws IOException {
        access.accept(request);
        boolean resolves = request.getRequestURI().endsWith("/resolve");
        try {
            if (resolves && properties.writes() && request.getMethod().equals("POST")) {
                resolve(request, response);
            } else if (resolves) {
                response.sendError(HttpServletResponse.SC_NOT_FOUND);
            } else if (request.getMethod().equals("GET") || request.getMethod().equals("HEAD")) {
                show(request, response);
            } else {
                response.setHeader("Allow", "GET, HEAD");
                response.sendError(HttpServletResponse.SC_METHOD_NOT_ALLOWED);
            }
        } catch (StorageUnavailableException e) {
            ConsolePage page = page(request, "The storage is unavailable");
            page.heading(
                    "The storage is unavailable",
                    "Nothing can be shown until it responds. Health and the log have the reason.");
            if (resolves && !e.nothingWritten()) {
                page.message(
                        false,
                        "Your decision may have been recorded, or not. Look at the record again before you repeat it.");
            }
            write(page, HttpServletResponse.SC_SERVICE_UNAVAILABLE, response);
        } catch (CorruptRecordException e) {
            ConsolePage page = page(request, "Unreadable record");
            page.heading(
                    "This record cannot be read",
                    "It is damaged, or from a newer version. Its ID gets 503. See the operator's page about CorruptRecordException.");
            write(page, HttpServletResponse.SC_OK, response);
        }
    }

    private RecordsView records() {
        return new RecordsView(admin.get());
    }

    /** The path of the page on its server. A DispatcherServlet may have a prefix of its own. */
    private String path(HttpServletRequest request) {
        String prefix = request.getPathInfo() == null ? "" : request.getServletPath();
        return request.getContextPath() + prefix + properties.path();
    }

    private ConsolePage page(HttpServletRequest request, String title) {
        return new ConsolePage(path(request), title, admin.get().namespace(), calls);
    }

    private void show(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String id = given(request, "id");
        String key = given(request, "key");
        String state = given(request, "state");
        try {
            ConsolePage page;
            if (id != null) {
                page = found(id, request);
            } else if (key != null) {
                page = record(key, request);
            } else if (state != null) {
                page = list(state, request);
            } else {
                page = overview(request);
            }
            write(page, HttpServletResponse.SC_OK, response);
        } catch (IllegalArgumentException e) {
            ConsolePage page = page(request, "Not valid");
            search(page, request);
            page.heading("This cannot be shown", "The address of this page, or what was entered, is not valid.");
            page.message(false, sentence(String.valueOf(e.getMessage())));
            write(page, HttpServletResponse.SC_BAD_REQUEST, response);
        }
    }

    private static @Nullable String given(HttpServletRequest request, String name) {
        String value = request.getParameter(name);
        return value == null || value.isBlank() ? null : value.strip();
    }

    private static void search(ConsolePage page, HttpServletRequest request) {
        page.search(
                given(request, "id"),
                given(request, "principal"),
                given(request, "scope"),
                given(request, "operation"));
    }

    private ConsolePage overview(HttpServletRequest request) {
        ConsoleOverview overview = ConsoleOverview.of(admin.get());
        ConsolePage page = page(request, "Overview");
        search(page, request);
        page.heading(
                overview.heading(),
                "An abandoned or unknown record is an operation that may or may not have taken effect. Its retries are refused until"
                        + " somebody has looked.");
        if (!overview.complete()) {
            page.message(
                    false,
                    "There are more records than could be read in time: the counts are too low, and uncertain records may be missing."
                            + " The operator's tool reads all of them.");
        }
        page.states(overview.counts());
        if (!overview.urgent().isEmpty()) {
            page.table("urgent", "Decide these first", overview.urgent(), null);
        }
        page.plots(history, "24h".equals(request.getParameter("span")));
        return page;
    }

    private ConsolePage list(String state, HttpServletRequest request) {
        Set<State> states = RecordsView.states(Set.of(state));
        RecordsView.ListedRecords found =
                records().list(record -> states.contains(record.state()), given(request, "after"), PAGE);
        ConsolePage page = page(request, "Records: " + state);
        search(page, request);
        page.heading("Records: " + state.replace('-', ' '), "In the order of their keys, which are hashes of the IDs.");
        page.table("list", "Up to " + PAGE + " records", found.records(), "There is no such record.");
        if (found.next() != null) {
            page.next("?state=" + encoded(state) + "&amp;after=" + encoded(found.next()));
        }
        return page;
    }

    private ConsolePage found(String id, HttpServletRequest request) {
        RecordsView.IdOwner owner = new RecordsView.IdOwner(
                given(request, "principal"), given(request, "scope"), given(request, "operation"));
        RecordsView.AllOfId all = records().find(id, owner);
        List<RecordsView.FoundRecord> found = all.records();
        ConsolePage page = page(request, "Search");
        search(page, request);
        page.heading(
                found.isEmpty()
                        ? "No record of this ID"
                        : found.size() == 1 ? "1 record of this ID" : found.size() + " records of this ID",
                found.isEmpty()
                        ? "It was never used here, its retention is over, or it belongs to a user, scope or operation that you have not given."
                        : "Each use of an ID has a record of its own.");
        all.unreadable()
                .forEach(one -> page.message(
                        false,
                        "There is one more record, and it cannot be read. Its operation may have taken effect. Its key is "
                                + one.key() + "."));
        found.forEach(one -> page.record(one.record(), one.kind()));
        return page;
    }

    private ConsolePage record(String key, HttpServletRequest request) {
        Optional<IdempotenceRecord> found = records().find(key);
        ConsolePage page = page(request, "Record");
        String result = given(request, "result");
        if (result != null) {
            IdempotenceAdmin.Resolved resolved = resolved(result);
            boolean done = resolved.isDone();
            // Anybody can make a link to this page: it must not claim what the record denies.
            if (!done || found.filter(IdempotenceRecord::isUncertain).isEmpty()) {
                page.message(done, sentence(resolved.message(resolution(request))));
            }
        }
        if (found.isEmpty()) {
            page.heading("No such record", "Its retention is over, or it was deleted.");
            return page;
        }
        IdempotenceRecord record = found.get();
        boolean uncertain = record.isUncertain();
        page.heading(
                uncertain ? "Did it happen?" : "Record",
                uncertain
                        ? "The process that ran this operation died or was cut off, or its handler could not tell. Retries are refused until"
                                + " you record your finding."
                        : "This record needs no decision.");
        page.record(record, null);
        if (uncertain) {
            String known = calls.of(record.key())
                    .map(UncertainCalls.UncertainCall::request)
                    .map(this::questionOf)
                    .orElse(null);
            page.questions(
                    known == null ? properties.question() : known, known == null ? properties.questions() : Map.of());
            if (properties.writes()) {
                page.decision(record, hiddenFields(request));
            } else {
                page.noDecisions();
            }
        }
        return page;
    }

    /** The question of the operation that a request belongs to; the general one if it has none. */
    private String questionOf(String request) {
        AntPathMatcher paths = new AntPathMatcher();
        return properties.questions().entrySet().stream()
                .filter(question -> paths.match(question.getKey(), request))
                .map(Map.Entry::getValue)
                .findFirst()
                .orElse(properties.question());
    }

    private static IdempotenceAdmin.Resolved resolved(String name) {
        for (IdempotenceAdmin.Resolved resolved : IdempotenceAdmin.Resolved.values()) {
            if (resolved.name().equalsIgnoreCase(name)) {
                return resolved;
            }
        }
        throw new IllegalArgumentException("this address has no such result");
    }

    private static String sentence(String message) {
        return Character.toUpperCase(message.charAt(0)) + message.substring(1) + ".";
    }

    /** Our own token, and that of Spring Security if the application uses it. Its class is not needed for that. */
    private static String hiddenFields(HttpServletRequest request) {
        StringBuilder fields = new StringBuilder(String.valueOf(request.getAttribute(FormTokens.FIELD)));
        ConsoleSecurity.csrf(request)
                .ifPresent(field -> fields.append("<input type=\"hidden\" name=\"")
                        .append(escaped(field.name()))
                        .append("\" value=\"")
                        .append(escaped(field.value()))
                        .append("\">"));
        return fields.toString();
    }

    private static String escaped(String text) {
        return HtmlUtils.htmlEscape(text, StandardCharsets.UTF_8.name());
    }

    private void resolve(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (FormTokens.idOf(request).isEmpty() || !"yes".equals(request.getParameter("checked"))) {
            response.sendError(HttpServletResponse.SC_FORBIDDEN);
            return;
        }
        IdempotenceAdmin.Resolved resolved;
        String key = String.valueOf(given(request, "key"));
        try {
            long fence = Long.parseLong(String.valueOf(given(request, "fence")));
            resolved = records().resolve(key, fence, resolution(request));
        } catch (IllegalArgumentException e) {
            response.sendError(HttpServletResponse.SC_BAD_REQUEST);
            return;
        }
        // See Other: a reload of the result sends nothing.
        response.setStatus(HttpServletResponse.SC_SEE_OTHER);
        response.setHeader(
                "Location",
                path(request) + "?key=" + encoded(key) + "&as=" + encoded(String.valueOf(given(request, "as")))
                        + "&result=" + resolved.name().toLowerCase(Locale.ROOT));
    }

    private static Resolution resolution(HttpServletRequest request) {
        return switch (String.valueOf(given(request, "as"))) {
            case "applied" -> Resolution.APPLIED;
            case "not-applied" -> Resolution.NOT_APPLIED;
            default -> throw new IllegalArgumentException("as takes applied or not-applied");
        };
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static void write(ConsolePage page, int status, HttpServletResponse response) throws IOException {
        byte[] html = page.end().getBytes(StandardCharsets.UTF_8);
        response.setStatus(status);
        response.setContentType("text/html;charset=UTF-8");
        response.setHeader("Cache-Control", "no-store");
        response.setHeader("Content-Security-Policy", ConsoleStyle.POLICY);
        response.setHeader("X-Content-Type-Options", "nosniff");
        response.setHeader("Referrer-Policy", "same-origin");
        response.setContentLength(html.length);
        response.getOutputStream().write(html);
    }
}
