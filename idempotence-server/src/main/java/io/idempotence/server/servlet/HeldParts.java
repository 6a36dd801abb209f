package io.idempotence.server.servlet;

import jakarta.servlet.http.Part;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.Charset;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The parts of a multipart body. The container has parsed them before the handler could choose an encoding. If the handler chooses one
 * before it reads the first part or parameter, names and texts are decoded again.
 */
final class HeldParts {
    private final Collection<Part> parsed;
    /** The encoding of the request when it was parsed. */
    private final @Nullable String before;

    private @Nullable String chosen;
    private boolean read;
    private boolean parametersFirst;
    private @Nullable Map<String, String[]> texts;
    private @Nullable Map<String, String[]> textsBefore;

    HeldParts(Collection<Part> parsed, @Nullable String before) {
        this.parsed = parsed;
        this.before = before;
    }

    /** Sets the encoding that the handler chooses. This has no effect after something was read. */
    void choose(String encoding) {
        if (!read) {
            chosen = encoding;
        }
    }

    /** @param ofContainer the encoding that the container reports; Undertow accepts no other once it has parsed */
    @Nullable
    String encoding(@Nullable String ofContainer) {
        return chosen != null && Objects.equals(ofContainer, before) ? chosen : ofContainer;
    }

    /** @param ofContainer the parts as the container, or a filter in front, returns them */
    Collection<Part> parts(Collection<Part> ofContainer, FormRules rules) {
        read = true;
        if (chosen == null || !rules.decodesNamesOfParts()) {
            return ofContainer;
        }
        Charset from = rules.charsetOfNames(before);
        Charset to = rules.charsetOfParts(chosen);
        return ofContainer.stream()
                .<Part>map(part -> new RedecodedPart(part, from, to))
                .toList();
    }

    /**
     * Returns the parameters of the query and of the parts.
     *
     * @param ofContainer both, as the container decoded them
     */
    Map<String, String[]> parameters(Map<String, String[]> ofContainer, boolean hasQuery, FormRules rules) {
        parametersFirst |= !read;
        read = true;
        boolean inOtherOrder = hasQuery && parametersFirst && rules.ordersParametersByReading();
        if (chosen == null && !inOtherOrder) {
            return ofContainer;
        }
        boolean queryFirst = parametersFirst || !rules.ordersParametersByReading();
        if (textsBefore == null) {
            textsBefore = texts(parsed, before, rules);
        }
        Map<String, String[]> ofParts = textsBefore;
        if (chosen != null) {
            if (texts == null) {
                texts = texts(parts(parsed, rules), chosen, rules);
            }
            ofParts = texts;
        }
        Map<String, String[]> ofQuery = new LinkedHashMap<>(ofContainer);
        textsBefore.forEach((name, values) ->
                ofQuery.computeIfPresent(name, (same, all) -> without(values, all, rules.ordersParametersByReading())));
        Map<String, String[]> all = new LinkedHashMap<>(queryFirst ? ofQuery : ofParts);
        (queryFirst ? ofParts : ofQuery).forEach((name, values) -> all.merge(name, values, FormRules::joined));
        return Collections.unmodifiableMap(all);
    }

    /**
     * Returns a parameter's values without those of parts; null if none remain.
     *
     * @param mayBeFirst whether those of parts may come first. Those of the query do if a filter in front has read parameters
     */
    private static String @Nullable [] without(String[] parts, String[] all, boolean mayBeFirst) {
        if (all.length <= parts.length) {
            return null;
        }
        boolean areFirst = mayBeFirst && Arrays.equals(Arrays.copyOf(all, parts.length), parts);
        return areFirst
                ? Arrays.copyOfRange(all, parts.length, all.length)
                : Arrays.copyOf(all, all.length - parts.length);
    }

    /** The texts of all parts that are not files. */
    private static Map<String, String[]> texts(Collection<Part> parts, @Nullable String encoding, FormRules rules) {
        Charset charset = rules.charsetOfTexts(parts, encoding);
        Map<String, String[]> texts = new LinkedHashMap<>();
        for (Part part : parts) {
            if (part.getSubmittedFileName() == null && part.getName() != null) {
                String text = new String(FormRules.bytes(part), rules.charsetOfText(part, charset));
                texts.merge(part.getName(), new String[] {text}, FormRules::joined);
            }
        }
        return texts;
    }

    /** A part whose names and headers the container decoded in another encoding than the handler chose. */
    private static final class RedecodedPart implements Part {
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
}
