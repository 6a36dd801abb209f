package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;

/** The attempt number that a caller sends. It is a hint: a value that is not a number counts as 1 and is never refused. */
final class AttemptNumber {
    private static final Pattern NUMBER = Pattern.compile("[1-9][0-9]{0,8}");

    private AttemptNumber() {}

    static int of(HttpServletRequest request) {
        List<String> lines = Collections.list(request.getHeaders(IdempotenceHeaders.IDEMPOTENCY_ATTEMPT));
        return lines.size() == 1 && NUMBER.matcher(lines.get(0)).matches() ? Integer.parseInt(lines.get(0)) : 1;
    }
}
