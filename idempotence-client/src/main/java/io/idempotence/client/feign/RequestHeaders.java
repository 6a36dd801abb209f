package io.idempotence.client.feign;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;

/** The headers of a request in one map for all spellings of a name. Feign's clients look for a name in one spelling only. */
final class RequestHeaders {
    private RequestHeaders() {}

    static Map<String, Collection<String>> copyOf(Map<String, Collection<String>> headers) {
        Map<String, Collection<String>> copy = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        headers.forEach((name, lines) -> copy.merge(name, lines, RequestHeaders::joined));
        return copy;
    }

    /** Returns a copy. {@code dropped} gets names in lower case. */
    static Map<String, Collection<String>> without(Map<String, Collection<String>> headers, Predicate<String> dropped) {
        Map<String, Collection<String>> kept = copyOf(headers);
        kept.keySet().removeIf(name -> dropped.test(name.toLowerCase(Locale.ROOT)));
        return kept;
    }

    private static Collection<String> joined(Collection<String> some, Collection<String> more) {
        Collection<String> all = new ArrayList<>(some);
        all.addAll(more);
        return all;
    }
}
