package io.idempotence.server.servlet;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import io.idempotence.internal.FieldDigest;
import java.io.IOException;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/** The form of {@link BodyForm#canonicalJson()}: a digest of the value, with the members of every object sorted by name. */
final class CanonicalJson implements BodyForm {
    private static final int DEEPEST = 200;

    @Override
    public byte[] of(String mediaType, byte[] body) {
        if (!mediaType.equals("application/json") && !mediaType.endsWith("+json")) {
            return body;
        }
        try {
            String text = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(body))
                    .toString();
            JsonReader json = new JsonReader(new StringReader(text));
            json.setStrictness(Strictness.STRICT);
            byte[] value = value(json, 0);
            return json.peek() == JsonToken.END_DOCUMENT ? value : body;
        } catch (IOException | IllegalStateException notPlainJson) {
            return body;
        }
    }

    /** Rejects half of a surrogate pair, which an escape can spell but UTF-8 cannot encode. */
    private static String encodable(String text) throws IOException {
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
            throw new IOException("a lone surrogate");
        }
        return text;
    }

    /** Returns a digest of the digests of all nested values, so that no value can be spelled to look like another. */
    private static byte[] value(JsonReader json, int depth) throws IOException {
        if (depth > DEEPEST) {
            throw new IOException("nested too deeply");
        }
        JsonToken kind = json.peek();
        FieldDigest digest = new FieldDigest().add(kind.name());
        switch (kind) {
            case BEGIN_OBJECT -> {
                Map<String, byte[]> members = new TreeMap<>();
                json.beginObject();
                while (json.hasNext()) {
                    if (members.put(encodable(json.nextName()), value(json, depth + 1)) != null) {
                        throw new IOException("a duplicate member");
                    }
                }
                json.endObject();
                members.forEach((name, member) -> digest.add(name).add(member));
            }
            case BEGIN_ARRAY -> {
                json.beginArray();
                while (json.hasNext()) {
                    digest.add(value(json, depth + 1));
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
}
