package io.idempotence.spring.actuate;

import io.idempotence.internal.Durations;
import io.idempotence.server.storage.IdempotenceRecord;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.web.util.HtmlUtils;

/** The HTML of the console: no scripts, no images, nothing from elsewhere. Every text that is not ours is escaped. */
final class ConsolePage {
    private final StringBuilder html = new StringBuilder(16_384);
    private final String path;
    private final UncertainCalls calls;

    /**
     * Begins a page.
     *
     * @param path the console's path, with the context path
     */
    ConsolePage(String path, String title, String namespace, UncertainCalls calls) {
        this.path = path;
        this.calls = calls;
        html.append("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">")
                .append("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
        text(title)
                .append(" · Idempotence</title><style>")
                .append(ConsoleStyle.CSS)
                .append("</style></head><body>");
        html.append(
                "<a class=\"skip\" href=\"#main\">Skip to the content</a><header><div class=\"in\"><a class=\"brand\" href=\"");
        text(path).append("\">Idempotence</a><span class=\"ns\">Namespace <b>");
        text(namespace).append("</b></span></div></header><main id=\"main\" tabindex=\"-1\"><div class=\"in\">");
    }

    String end() {
        return html.append("</div></main></body></html>").toString();
    }

    private StringBuilder text(Object text) {
        return html.append(HtmlUtils.htmlEscape(String.valueOf(text), StandardCharsets.UTF_8.name()));
    }

    void search(@Nullable String id, @Nullable String principal, @Nullable String scope, @Nullable String operation) {
        boolean more = principal != null || scope != null || operation != null;
        html.append("<form role=\"search\" class=\"card search\" action=\"");
        text(path)
                .append("\"><div class=\"row\"><label class=\"grow\">Idempotence ID <input name=\"id\" required"
                        + " maxlength=\"255\" autocomplete=\"off\" spellcheck=\"false\" value=\"");
        text(id == null ? "" : id)
                .append("\"></label><button>Find</button></div><details")
                .append(more ? " open" : "")
                .append("><summary>The ID belongs to a user, a scope or an operation</summary><div class=\"row\">");
        field("principal", "User (principal)", principal);
        field("scope", "or scope", scope);
        field("operation", "Operation of an execution", operation);
        html.append("</div></details></form>");
    }

    private void field(String name, String label, @Nullable String value) {
        html.append("<label class=\"grow\">")
                .append(label)
                .append(" <input name=\"")
                .append(name)
                .append("\" value=\"");
        text(value == null ? "" : value).append("\" autocomplete=\"off\"></label>");
    }

    void heading(String title, String explanation) {
        html.append("<h1>");
        text(title).append("</h1><p class=\"lead\">");
        text(explanation).append("</p>");
    }

    /** A message that is read aloud and has the focus. */
    void message(boolean good, String text) {
        html.append("<p class=\"note ")
                .append(good ? "good" : "bad")
                .append("\" role=\"")
                .append(good ? "status" : "alert")
                .append("\" tabindex=\"-1\" autofocus>");
        text(text).append("</p>");
    }

    void states(Map<IdempotenceRecord.State, Long> counts) {
        html.append("<section aria-labelledby=\"states\"><h2 id=\"states\">Records by state</h2><ul class=\"tiles\">");
        for (IdempotenceRecord.State state : List.of(
                IdempotenceRecord.State.ABANDONED,
                IdempotenceRecord.State.UNKNOWN,
                IdempotenceRecord.State.IN_PROGRESS,
                IdempotenceRecord.State.COMPLETED,
                IdempotenceRecord.State.RELEASED)) {
            html.append("<li><a class=\"tile ").append(state.label()).append("\" href=\"");
            text(path)
                    .append("?state=")
                    .append(state.label())
                    .append("\"><b>")
                    .append(String.format("%,d", counts.getOrDefault(state, 0L)))
                    .append("</b> <span>")
                    .append(state.label().replace('-', ' '))
                    .append("</span></a></li>");
        }
        html.append("</ul></section>");
    }

    void table(String id, String title, List<IdempotenceRecord> records, @Nullable String empty) {
        html.append("<section aria-labelledby=\"")
                .append(id)
                .append("\"><h2 id=\"")
                .append(id)
                .append("\">");
        text(title).append("</h2>");
        if (records.isEmpty()) {
            html.append("<p class=\"card empty\">");
            text(String.valueOf(empty)).append("</p></section>");
            return;
        }
        html.append(
                "<div class=\"card scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table of records\"><table><thead><tr><th scope=\"col\">Record<th scope=\"col\">State<th scope=\"col\">Uncertain for"
                        + "<th scope=\"col\">Forgotten in<th scope=\"col\"><span class=\"sr\">Action</span></tr></thead><tbody>");
        records.forEach(this::row);
        html.append("</tbody></table></div></section>");
    }

    private void row(IdempotenceRecord record) {
        boolean uncertain = record.isUncertain();
        html.append("<tr><th scope=\"row\"><code>");
        text(brief(record)).append("</code>");
        calls.of(record.key()).ifPresent(this::call);
        html.append("</th><td>");
        state(record.state());
        html.append("</td><td>")
                .append(uncertain ? Durations.shown(record.uncertainFor()) : "–")
                .append("</td><td>");
        left(record, uncertain);
        html.append("</td><td class=\"act\"><a href=\"");
        text(path).append("?key=").append(URLEncoder.encode(record.key().value(), StandardCharsets.UTF_8));
        html.append("\">").append(uncertain ? "Resolve" : "Open").append("<span class=\"sr\"> ");
        text(brief(record)).append("</span></a></td></tr>");
    }

    private void call(UncertainCalls.UncertainCall call) {
        html.append("<span class=\"call\">");
        if (call.request() != null) {
            text(call.request()).append(" · ");
        }
        text(call.id().value()).append("</span>");
    }

    private void left(IdempotenceRecord record, boolean uncertain) {
        boolean urgent = uncertain && record.retentionLeft().compareTo(Duration.ofHours(1)) < 0;
        html.append(urgent ? "<strong class=\"urgent\">" : "")
                .append(Durations.shown(record.retentionLeft()))
                .append(urgent ? " – soon</strong>" : "");
    }

    private void state(IdempotenceRecord.State state) {
        html.append("<span class=\"state ")
                .append(state.label())
                .append("\">")
                .append(state.label().replace('-', ' '))
                .append("</span>");
    }

    /** The end of the key, as people compare it. */
    private static String brief(IdempotenceRecord record) {
        String key = record.key().value();
        return key.substring(key.lastIndexOf(':') + 1).substring(0, 12) + "…";
    }

    void next(String link) {
        html.append("<p class=\"more\"><a href=\"");
        text(path).append(link).append("\">Next page</a></p>");
    }

    void record(IdempotenceRecord record, @Nullable String kind) {
        boolean uncertain = record.isUncertain();
        html.append("<section class=\"card\" aria-label=\"Record\"><dl><dt>State<dd>");
        state(record.state());
        if (kind != null) {
            html.append("<dt>Used by<dd>");
            text(
                    switch (kind) {
                        case "request" -> "a request";
                        case "execute" -> "Idempotence.execute";
                        default -> "saveIfAbsent";
                    });
        }
        if (uncertain) {
            html.append("<dt>Uncertain for<dd>").append(Durations.shown(record.uncertainFor()));
        }
        if (record.state() == IdempotenceRecord.State.IN_PROGRESS) {
            html.append("<dt>Lease left<dd>").append(Durations.shown(record.leaseLeft()));
        }
        html.append("<dt>Forgotten in<dd>");
        left(record, uncertain);
        calls.of(record.key()).ifPresent(call -> {
            html.append("<dt>ID<dd><code class=\"key\">");
            text(call.id().value()).append("</code>");
            if (call.request() != null) {
                html.append("<dt>Request<dd><code class=\"key\">");
                text(call.request()).append("</code>");
            }
        });
        html.append("<dt>Claims so far<dd>").append(record.fence()).append("<dt>Key<dd><code class=\"key\">");
        text(record.key().value()).append("</code></dl>");
        if (kind != null) {
            html.append("<p class=\"more\"><a href=\"");
            text(path)
                    .append("?key=")
                    .append(URLEncoder.encode(record.key().value(), StandardCharsets.UTF_8))
                    .append("\">")
                    .append(uncertain ? "Resolve this record" : "Open this record")
                    .append("</a></p>");
        }
        html.append("</section>");
    }

    /** The questions that a person answers first, or only the one of the operation if that is known. */
    void questions(String general, Map<String, String> questions) {
        html.append("<section class=\"card ask\" aria-labelledby=\"ask\"><h2 id=\"ask\">Ask first</h2>");
        if (questions.isEmpty()) {
            html.append("<p class=\"question\">");
            text(general).append("</p>");
        } else {
            html.append("<p>Which operation was it? Look into the log, or ask the caller.</p><dl class=\"questions\">");
            questions.forEach((operation, question) -> {
                html.append("<dt>");
                text(operation).append("<dd>");
                text(question);
            });
            html.append("<dt>Any other<dd>");
            text(general).append("</dl>");
        }
        html.append(
                "<p class=\"soft\">Until somebody decides, every retry is refused. After the record is forgotten, a retry runs.</p>");
    }

    void noDecisions() {
        html.append("<p class=\"note\">Decisions are switched off on this page. Use the operator's tool, or set"
                + " <code>idempotence.console.writes=true</code>.</p></section>");
    }

    /** The form for the decision. {@code hidden} is markup. */
    void decision(IdempotenceRecord record, String hidden) {
        html.append("<form method=\"post\" action=\"");
        text(path).append("/resolve\">").append(hidden).append("<input type=\"hidden\" name=\"key\" value=\"");
        text(record.key().value())
                .append("\"><input type=\"hidden\" name=\"fence\" value=\"")
                .append(record.fence())
                .append("\"><fieldset><legend>Your finding</legend>");
        choice(
                "applied",
                "It took effect",
                "It never runs again. Callers are told that the result is not available, and read"
                        + " it from the business data. This is final.");
        choice(
                "not-applied",
                "It took no effect",
                "The next retry runs the operation. If you are wrong, it happens twice.");
        html.append(
                "</fieldset><label class=\"check\"><input type=\"checkbox\" name=\"checked\" value=\"yes\" required>"
                        + " <span>I have checked the business data.</span></label><p class=\"buttons\"><button>Record the decision</button> <a href=\"");
        text(path).append("\">Cancel</a></p></form></section>");
    }

    private void choice(String value, String label, String consequence) {
        html.append("<label class=\"choice\"><input type=\"radio\" name=\"as\" required value=\"")
                .append(value)
                .append("\" aria-describedby=\"of-")
                .append(value)
                .append("\"><span><b>")
                .append(label)
                .append("</b><small id=\"of-")
                .append(value)
                .append("\">")
                .append(consequence)
                .append("</small></span></label>");
    }

    /** The plots, one below the other, because their sizes differ by magnitudes. */
    void plots(EventHistory history, boolean day) {
        int bins = day ? 96 : 60;
        int width = day ? 15 : 1;
        html.append(
                "<section aria-labelledby=\"plots\"><div class=\"split\"><h2 id=\"plots\">Over time, in this instance</h2>"
                        + "<nav aria-label=\"Time span\"><a href=\"");
        text(path)
                .append(day ? "\">Last hour</a> " : "\" aria-current=\"true\">Last hour</a> ")
                .append("<a href=\"");
        text(path)
                .append(day ? "?span=24h\" aria-current=\"true\">" : "?span=24h\">")
                .append("Last 24 hours</a></nav></div><div class=\"card plots\">");
        for (EventHistory.Series series : EventHistory.Series.values()) {
            plot(series, history.counts(series, bins, width), width);
        }
        html.append("<div class=\"axis\" aria-hidden=\"true\"><span>")
                .append(day ? "24 hours ago" : "60 minutes ago")
                .append("</span><span>")
                .append(day ? "12 hours" : "30 minutes")
                .append("</span><span>now</span></div></div></section>");
    }

    private void plot(EventHistory.Series series, List<Integer> counts, int width) {
        int total = counts.stream().mapToInt(Integer::intValue).sum();
        int peak = counts.stream().mapToInt(Integer::intValue).max().orElse(0);
        String unit = width == 1 ? "a minute" : width + " minutes";
        String name = series.name().toLowerCase(Locale.ROOT);
        html.append("<figure class=\"")
                .append(name)
                .append("\"><figcaption><b>")
                .append(series.title());
        html.append("</b> <span class=\"soft\">").append(series.meaning()).append("</span><span class=\"total\">");
        html.append(String.format("%,d", total))
                .append("</span></figcaption><svg viewBox=\"0 0 ")
                .append(counts.size() * 10)
                .append(" 48\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"")
                .append(series.title())
                .append(": ")
                .append(total)
                .append(" in all, at most ")
                .append(peak)
                .append(" in ")
                .append(unit)
                .append("\">");
        for (int i = 0; i < counts.size(); i++) {
            int count = counts.get(i);
            if (count > 0) {
                double height = Math.max(3, 46.0 * count / peak);
                html.append(String.format(
                        Locale.ROOT,
                        "<rect x=\"%d\" y=\"%.1f\" width=\"8\" height=\"%.1f\"><title>%d, %d min ago</title></rect>",
                        i * 10 + 1,
                        48 - height,
                        height,
                        count,
                        (counts.size() - 1 - i) * width));
            }
        }
        html.append("<path d=\"M0 47.5H").append(counts.size() * 10).append("\"/></svg></figure>");
    }
}
