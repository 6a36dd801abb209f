package io.idempotence.it.wire;

import java.nio.charset.StandardCharsets;

/**
 * A request as it came over the wire.
 *
 * @param head request line and headers, with the empty line
 */
public record RawRequest(String head, byte[] body) {
    /** The header's first value, or null. */
    public String header(String name) {
        for (String line : head.split("\r\n", -1)) {
            int colon = line.indexOf(':');
            if (colon > 0 && line.substring(0, colon).equalsIgnoreCase(name)) {
                return line.substring(colon + 1).trim();
            }
        }
        return null;
    }

    public String text() {
        return new String(body, StandardCharsets.UTF_8);
    }

    /** The same request over a connection that ends with the response. What it asks of the connection is not passed on. */
    public byte[] forLastOfConnection() {
        String last = head.replaceAll("(?i)\r\n(Connection|Upgrade|HTTP2-Settings):[^\r]*", "");
        last = last.substring(0, last.length() - 2) + "Connection: close\r\n\r\n";
        byte[] headBytes = last.getBytes(StandardCharsets.ISO_8859_1);
        byte[] all = new byte[headBytes.length + body.length];
        System.arraycopy(headBytes, 0, all, 0, headBytes.length);
        System.arraycopy(body, 0, all, headBytes.length, body.length);
        return all;
    }
}
