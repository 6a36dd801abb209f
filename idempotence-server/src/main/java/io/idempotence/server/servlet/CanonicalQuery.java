package io.idempotence.server.servlet;

import io.idempotence.internal.FieldDigest;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A query without the differences that two attempts may have: the order of parameters with different names, and how a byte is escaped.
 * Parameters of one name keep their order. No encoding is applied, so bytes that are not text differ as well.
 */
final class CanonicalQuery {
    private static final CanonicalQuery EMPTY = new CanonicalQuery(List.of());

    private final List<Parameter> parameters;

    private CanonicalQuery(List<Parameter> parameters) {
        this.parameters = parameters;
    }

    static CanonicalQuery of(@Nullable String query) {
        if (query == null) {
            return EMPTY;
        }
        List<Parameter> parameters = new ArrayList<>();
        for (String pair : query.split("&")) {
            if (!pair.isEmpty()) {
                int equals = pair.indexOf('=');
                parameters.add(new Parameter(
                        Text.of(equals < 0 ? pair : pair.substring(0, equals)),
                        equals < 0 ? null : Text.of(pair.substring(equals + 1))));
            }
        }
        parameters.sort(Comparator.comparing(Parameter::name));
        return new CanonicalQuery(parameters);
    }

    void addTo(FieldDigest digest) {
        digest.add(parameters.size());
        for (Parameter parameter : parameters) {
            parameter.name.addTo(digest);
            if (parameter.value == null) {
                digest.add("without");
            } else {
                parameter.value.addTo(digest);
            }
        }
    }

    /** @param value null if there is no equals sign */
    private record Parameter(Text name, @Nullable Text value) {}

    /** A name or a value as unescaped bytes, or as it was sent if an escape is invalid. */
    private record Text(boolean unescaped, byte[] bytes) implements Comparable<Text> {
        static Text of(String text) {
            // For a character that is not ASCII, only the container has the bytes that the caller sent.
            boolean ascii = text.chars().allMatch(c -> c < 0x80);
            byte[] bytes = ascii ? FormRules.unescaped(text) : null;
            return bytes == null ? new Text(false, text.getBytes(StandardCharsets.UTF_8)) : new Text(true, bytes);
        }

        void addTo(FieldDigest digest) {
            digest.add(unescaped ? "bytes" : "text").add(bytes);
        }

        @Override
        public int compareTo(Text other) {
            int byBytes = Arrays.compare(bytes, other.bytes);
            return byBytes == 0 ? Boolean.compare(unescaped, other.unescaped) : byBytes;
        }
    }
}
