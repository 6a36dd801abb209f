package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Fingerprint;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The pieces of a request are digested so that no other request has the same bytes. */
class RequestFingerprintTest {
    /** The header and content of one part are the content of the first of two parts, and the name and the file name of the second. */
    @Test
    @DisplayName("P5: a part with a header is another request than two parts whose contents and names spell it")
    void aHeaderOfAPartIsNotSpelledByAnotherPart() throws IOException {
        String text = "c".repeat(345);
        String noMediaType = "\u00ff".repeat(Long.BYTES);
        String noBytes = "\0".repeat(Long.BYTES);
        FormPart one = new FormPart("a", null, Map.of("x", List.of("a")), text + noMediaType + noBytes);
        assertThat(one.getSize()).isEqualTo(0x100 + 'i');

        String size = "\0".repeat(6) + "\u0001i";
        FormPart first = new FormPart("a", null, Map.of(), "x");
        FormPart second = new FormPart("\0", size + text, Map.of(), "");
        assertThat(fingerprint(one)).isNotEqualTo(fingerprint(first, second));
    }

    private static @Nullable Fingerprint fingerprint(Part... parts) throws IOException {
        HttpServletRequest request = (HttpServletRequest) Proxy.newProxyInstance(
                RequestFingerprintTest.class.getClassLoader(),
                new Class<?>[] {HttpServletRequest.class},
                (self, method, arguments) -> switch (method.getName()) {
                    case "getMethod" -> "POST";
                    case "getRequestURI" -> "/p";
                    default -> null;
                });
        return RequestFingerprint.of(request, List.of(parts), 1_000);
    }

    /** @param content one byte for each character */
    private record FormPart(String name, @Nullable String file, Map<String, List<String>> headers, String content)
            implements Part {
        @Override
        public InputStream getInputStream() {
            return new ByteArrayInputStream(content.getBytes(StandardCharsets.ISO_8859_1));
        }

        @Override
        public @Nullable String getContentType() {
            return null;
        }

        @Override
        public String getName() {
            return name;
        }

        @Override
        public @Nullable String getSubmittedFileName() {
            return file;
        }

        @Override
        public long getSize() {
            return content.length();
        }

        @Override
        public void write(String fileName) {
            throw new UnsupportedOperationException(fileName);
        }

        @Override
        public void delete() {}

        @Override
        public @Nullable String getHeader(String header) {
            return null;
        }

        @Override
        public Collection<String> getHeaders(String header) {
            return headers.getOrDefault(header, List.of());
        }

        @Override
        public Collection<String> getHeaderNames() {
            return headers.keySet();
        }
    }
}
