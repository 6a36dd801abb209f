package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.RequestTemplate;
import io.idempotence.client.internal.http.HeaderLines;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The headers of Feign's requests and templates, whatever the case of their names. */
final class FeignHeaders {
    private FeignHeaders() {}

    /** The lines of the ID's header. */
    static List<String> idIn(Map<String, Collection<String>> headers) {
        return HeaderLines.of(headers, IDEMPOTENCY_KEY);
    }

    static void removeId(RequestTemplate template, Map<String, Collection<String>> headers) {
        for (String name : headers.keySet()) {
            if (name.equalsIgnoreCase(IDEMPOTENCY_KEY)) {
                template.removeHeader(name);
            }
        }
    }

    /** Sets the ID's header as a literal, because Feign would read braces as a template expression. */
    static void setId(RequestTemplate template, Map<String, Collection<String>> headers, String line) {
        removeId(template, headers);
        template.headerLiteral(IDEMPOTENCY_KEY, line);
    }

    /** Returns a copy with one entry for all spellings of a name. Feign's clients look for a name in one spelling only. */
    static Map<String, Collection<String>> copyOf(Map<String, Collection<String>> headers) {
        Map<String, Collection<String>> copy = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        headers.forEach((name, lines) -> copy.merge(name, lines, FeignHeaders::joined));
        return copy;
    }

    private static Collection<String> joined(Collection<String> some, Collection<String> more) {
        Collection<String> all = new ArrayList<>(some);
        all.addAll(more);
        return all;
    }
}
