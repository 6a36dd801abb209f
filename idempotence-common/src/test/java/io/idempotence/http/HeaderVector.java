package io.idempotence.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/** One entry of {@code header-vectors.json}: field lines, and whether they contain a valid ID. Other modules' tests use it, too. */
public record HeaderVector(List<String> lines, boolean accepted, boolean acceptedStrict, String id) {
    public static List<HeaderVector> all() {
        try (InputStream in = HeaderVector.class.getResourceAsStream("header-vectors.json")) {
            List<HeaderVector> vectors = new ArrayList<>();
            for (JsonNode node : new ObjectMapper().readTree(in)) {
                List<String> lines = new ArrayList<>();
                node.get("lines").forEach(line -> lines.add(line.asText()));
                vectors.add(new HeaderVector(
                        lines,
                        accepted(node, "accepted"),
                        accepted(node, "acceptedStrict"),
                        node.path("id").asText(null)));
            }
            return vectors;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static boolean accepted(JsonNode node, String name) {
        if (!node.has(name)) {
            throw new IllegalArgumentException("no '" + name + "' in " + node);
        }
        return node.get(name).booleanValue();
    }
}
