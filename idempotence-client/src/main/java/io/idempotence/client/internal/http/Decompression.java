package io.idempotence.client.internal.http;

import java.io.InputStream;
import java.util.List;
import java.util.Locale;
import java.util.zip.InflaterInputStream;

/**
 * The streams with which HTTP clients decompress a response body. A client may remove the length of such a response, but compressed data
 * has an end of its own.
 */
public final class Decompression {
    /**
     * The packages of Apache HttpClient and of Commons Compress, which it uses if present. Their streams that decompress have that in their
     * name.
     */
    private static final List<String> PACKAGES = List.of("org.apache.hc.", "org.apache.commons.compress.");

    private static final String NAME = "compress";

    private Decompression() {}

    /** Whether a stream decompresses, so that it fails if its data was cut. */
    public static boolean isDoneBy(InputStream in) {
        if (in instanceof InflaterInputStream) {
            return true;
        }
        String name = in.getClass().getName();
        for (String owner : PACKAGES) {
            if (name.startsWith(owner)) {
                return name.toLowerCase(Locale.ROOT).contains(NAME);
            }
        }
        return false;
    }
}
