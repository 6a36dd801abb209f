package io.idempotence.server.servlet;

import jakarta.servlet.http.Part;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.Charset;
import java.util.Collection;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** A part whose names and headers the container decoded in another encoding than the handler chose. */
final class RedecodedPart implements Part {
    private static final char UNDECODABLE = '\uFFFD';

    private final Part part;
    private final Charset from;
    private final Charset to;

    RedecodedPart(Part part, Charset from, Charset to) {
        this.part = part;
        this.from = from;
        this.to = to;
    }

    private @Nullable String again(@Nullable String text) {
        return text == null
                        || text.indexOf(UNDECODABLE) >= 0
                        || !from.newEncoder().canEncode(text)
                ? text
                : new String(text.getBytes(from), to);
    }

    @Override
    public @Nullable String getName() {
        return again(part.getName());
    }

    @Override
    public @Nullable String getSubmittedFileName() {
        String disposition = part.getHeader("Content-Disposition");
        // An extended name declares its own encoding (RFC 5987).
        boolean isExtended =
                disposition != null && disposition.toLowerCase(Locale.ROOT).contains("filename*");
        return isExtended ? part.getSubmittedFileName() : again(part.getSubmittedFileName());
    }

    @Override
    public @Nullable String getContentType() {
        return again(part.getContentType());
    }

    @Override
    public @Nullable String getHeader(String name) {
        return again(part.getHeader(name));
    }

    @Override
    public Collection<String> getHeaders(String name) {
        return part.getHeaders(name).stream().map(this::again).toList();
    }

    @Override
    public Collection<String> getHeaderNames() {
        return part.getHeaderNames();
    }

    @Override
    public InputStream getInputStream() throws IOException {
        return part.getInputStream();
    }

    @Override
    public long getSize() {
        return part.getSize();
    }

    @Override
    public void write(String fileName) throws IOException {
        part.write(fileName);
    }

    @Override
    public void delete() throws IOException {
        part.delete();
    }
}
