package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.RequestTemplate;
import io.idempotence.IdempotenceId;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.http.IdempotencyKeyHeader;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** The ID's header in Feign's terms. */
final class KeyHeader {
    private static final IdempotencyKeyHeader GRAMMAR = IdempotencyKeyHeader.standard();

    private KeyHeader() {}

    static List<String> lines(Map<String, Collection<String>> headers) {
        return HeaderLines.of(headers, IDEMPOTENCY_KEY);
    }

    /** Also refuses what Feign would write verbatim and a server would read as another header: CR and LF. */
    static IdempotenceId parse(List<String> lines) {
        return GRAMMAR.parse(lines).orElseThrow();
    }

    static String format(IdempotenceId id, IdempotencyKeyHeader.Style style) {
        return GRAMMAR.format(id, style);
    }

    static void remove(RequestTemplate template, Map<String, Collection<String>> headers) {
        for (String header : headers.keySet()) {
            if (header.equalsIgnoreCase(IDEMPOTENCY_KEY)) {
                template.removeHeader(header);
            }
        }
    }

    /** Literally: Feign would read braces as a template expression. */
    static void replace(RequestTemplate template, Map<String, Collection<String>> headers, String line) {
        remove(template, headers);
        template.headerLiteral(IDEMPOTENCY_KEY, line);
    }
}
