package io.idempotence.it.wire;

import java.util.List;

/**
 * A response as it came over the wire.
 *
 * @param statusLine empty if not even that came
 * @param headers lines, in their order
 * @param body without transfer coding
 * @param whole whether the response came to its end
 */
public record RawResponse(String statusLine, List<String> headers, byte[] body, boolean whole) {
    /** The header's first value, or null. */
    public String header(String name) {
        return headers.stream()
                .filter(line -> line.regionMatches(true, 0, name + ":", 0, name.length() + 1))
                .map(line -> line.substring(name.length() + 1).trim())
                .findFirst()
                .orElse(null);
    }

    public int status() {
        return statusLine.isEmpty() ? 0 : Integer.parseInt(statusLine.split(" ", 3)[1]);
    }

    boolean hasBody() {
        return status() != 204 && status() != 304;
    }
}
