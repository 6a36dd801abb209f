package io.idempotence.server.servlet;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import io.idempotence.internal.FieldDigest;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/**
 * The comparison of {@link BodyComparison#canonicalJson()}: by a digest of the value, with the members of every object sorted by name.
 * Members of open objects are held in memory, at a hundred bytes each or more, so their number has a limit.
 */
final class CanonicalJson implements BodyComparison {
    private static final int DEEPEST = 200;
    private static final int MOST_MEMBERS = 10_000;

    private static boolean isJson(String mediaType) {
        return mediaType.equals("application/json") || mediaType.endsWith("+json");
    }

    /**
     * The most memory that {@link #bytesToCompare} takes besides the body; 0 for another comparison. Gson keeps a text at two bytes per
     * character, and doubles its buffer when it is full.
     */
    static long memoryOf(BodyComparison comparison, String mediaType, int length) {
        return comparison instanceof CanonicalJson && isJson(mediaType) ? 5L * length : 0;
    }

    @Override
    public byte[] bytesToCompare(String mediaType, byte[] body) {
        if (!isJson(mediaType)) {
            return body;
        }
        try {
            // This decoder reports invalid bytes instead of replacing them.
            JsonReader json = new JsonReader(
                    new InputStreamReader(new ByteArrayInputStream(body), StandardCharsets.UTF_8.newDecoder()));
            json.setStrictness(Strictness.STRICT);
            byte[] value = new Digester(json).value(0);
            return json.peek() == JsonToken.END_DOCUMENT ? value : body;
        } catch (IOException | IllegalStateException notPlainJson) {
            return body;
        }
    }

    /** The digester of one text. */
    private static final class Digester {
        private final JsonReader json;
        /** Members of the objects that have not ended yet. */
        private int members;

        Digester(JsonReader json) {
            this.json = json;
        }

        /** Returns a digest of the digests of all nested values, so that no value can be spelled to look like another. */
        byte[] value(int depth) throws IOException {
            if (depth > DEEPEST) {
                throw new IOException("nested too deeply");
            }
            JsonToken kind = json.peek();
            FieldDigest digest = new FieldDigest().add(kind.name());
            switch (kind) {
                case BEGIN_OBJECT ->
                    object(depth).forEach((name, member) -> digest.add(name).add(member));
                case BEGIN_ARRAY -> {
                    json.beginArray();
                    while (json.hasNext()) {
                        digest.add(value(depth + 1));
                    }
                    json.endArray();
                }
                case STRING, NUMBER -> digest.add(encodable(json.nextString()));
                case BOOLEAN -> digest.add(Boolean.toString(json.nextBoolean()));
                case NULL -> json.nextNull();
                default -> throw new IOException("not a JSON value");
            }
            return digest.digest();
        }

        private Map<String, byte[]> object(int depth) throws IOException {
            Map<String, byte[]> object = new TreeMap<>();
            json.beginObject();
            while (json.hasNext()) {
                if (++members > MOST_MEMBERS) {
                    throw new IOException("too many members");
                }
                if (object.put(encodable(json.nextName()), value(depth + 1)) != null) {
                    throw new IOException("a duplicate member");
                }
            }
            json.endObject();
            members -= object.size();
            return object;
        }
    }

    /** Rejects half of a surrogate pair, which an escape can spell but UTF-8 cannot encode. */
    private static String encodable(String text) throws IOException {
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
            throw new IOException("a lone surrogate");
        }
        return text;
    }
}
