package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.RequestTemplate;
import io.idempotence.client.internal.http.HeaderLines;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** The header of the ID, in the form of Feign's requests and templates. */
final class KeyHeader {
    private KeyHeader() {}

    static List<String> lines(Map<String, Collection<String>> headers) {
        return HeaderLines.of(headers, IDEMPOTENCY_KEY);
    }

    static void remove(RequestTemplate template, Map<String, Collection<String>> headers) {
        for (String header : headers.keySet()) {
            if (header.equalsIgnoreCase(IDEMPOTENCY_KEY)) {
                template.removeHeader(header);
            }
        }
    }

    /** Sets the header as a literal, because Feign would read braces as a template expression. */
    static void replace(RequestTemplate template, Map<String, Collection<String>> headers, String line) {
        remove(template, headers);
        template.headerLiteral(IDEMPOTENCY_KEY, line);
    }
}
