package io.idempotence.server.servlet;

import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How a container turns the body of a form into parameters. It cannot do that itself once the body was read, and the body must be read
 * before its handler may run.
 */
enum FormRules {
    /** Tomcat 11: anything malformed is a 400. */
    TOMCAT_11(Set.of("POST"), StandardCharsets.ISO_8859_1, true),
    /** Tomcat 10.1: malformed parameters are left out. */
    TOMCAT_10(Set.of("POST"), StandardCharsets.ISO_8859_1, false),
    /** Jetty: only Content-Type says what the encoding is; anything malformed is a 400. */
    JETTY(Set.of("POST", "PUT"), StandardCharsets.UTF_8, true),
    /** Undertow: malformed parameters are left out. */
    UNDERTOW(Set.of(), StandardCharsets.UTF_8, false);

    /** As many as containers accept by default; Jetty counts names. */
    private static final int MAX_PARAMETERS = 1000;

    private final Set<String> methods;
    private final Charset standard;
    private final boolean strict;

    /** @param methods whose forms are parsed; empty for all */
    FormRules(Set<String> methods, Charset standard, boolean strict) {
        this.methods = methods;
        this.standard = standard;
        this.strict = strict;
    }

    /** A form that the container would refuse. */
    static final class MalformedFormException extends IllegalStateException {
        private static final long serialVersionUID = 1L;

        MalformedFormException(String message) {
            super(message);
        }
    }

    static FormRules of(HttpServletRequest request) {
        ServletRequest container = HeldRequest.innermost(request);
        String name = container.getClass().getName();
        if (name.startsWith("org.apache.catalina.")) {
            return request.getServletContext().getMinorVersion() == 0 ? TOMCAT_10 : TOMCAT_11;
        }
        return name.startsWith("org.eclipse.jetty.") ? JETTY : UNDERTOW;
    }

    /** Whether the container parses the forms of such requests. */
    boolean parses(HttpServletRequest request) {
        return MediaTypes.isForm(MediaTypes.of(request))
                && (methods.isEmpty() || methods.contains(request.getMethod()));
    }

    /**
     * Adds the parameters of a form.
     *
     * @param contentType of the form
     * @param encoding of the request when the first parameter is asked for; null if none is set
     * @throws MalformedFormException if the container would refuse the form
     */
    void parse(byte[] form, @Nullable String contentType, @Nullable String encoding, Map<String, String[]> into) {
        String declared = MediaTypes.charset(contentType);
        boolean isSet = encoding != null && !encoding.equals(declared);
        Charset charset = charset(this == JETTY ? declared : encoding, isSet);
        String[] pairs = new String(form, StandardCharsets.ISO_8859_1).split("&", -1);
        int parsed = into.values().stream().mapToInt(values -> values.length).sum();
        Set<String> names = new HashSet<>();
        for (int i = 0; i < pairs.length; i++) {
            String pair = pairs[i];
            if (pair.isEmpty() && (this != JETTY || i == pairs.length - 1)) {
                continue;
            }
            if (this != JETTY && ++parsed > MAX_PARAMETERS) {
                if (this == TOMCAT_10) {
                    return;
                }
                throw tooMany();
            }
            int equals = pair.indexOf('=');
            String name = decoded(equals < 0 ? pair : pair.substring(0, equals), charset);
            String value = equals < 0 ? "" : decoded(pair.substring(equals + 1), charset);
            if (this == JETTY && name != null && names.add(name) && names.size() > MAX_PARAMETERS) {
                throw tooMany();
            }
            if (name != null && value != null && !isRefused(name)) {
                into.merge(name, new String[] {value}, FormRules::joined);
            }
        }
    }

    private static MalformedFormException tooMany() {
        return new MalformedFormException("the request has more than " + MAX_PARAMETERS + " parameters");
    }

    private Charset charset(@Nullable String name, boolean isSet) {
        if (name == null) {
            return standard;
        }
        try {
            return Charset.forName(name);
        } catch (IllegalArgumentException unknown) {
            if (this == JETTY && !isSet) {
                throw new MalformedFormException("the form is in an unknown character encoding");
            }
            return standard;
        }
    }

    /** Tomcat takes no parameter without a name. */
    private boolean isRefused(String name) {
        if (this == TOMCAT_11 && name.isEmpty()) {
            throw new MalformedFormException("the form has a parameter without a name");
        }
        return this == TOMCAT_10 && name.isEmpty();
    }

    private @Nullable String decoded(String text, Charset charset) {
        byte[] bytes = unescaped(text);
        if (bytes == null || (this == JETTY && !isKnownToJetty(charset) && !isAscii(bytes))) {
            return malformed();
        }
        CodingErrorAction onError = strict ? CodingErrorAction.REPORT : CodingErrorAction.REPLACE;
        CharsetDecoder decoder = charset.newDecoder().onMalformedInput(onError).onUnmappableCharacter(onError);
        try {
            return decoder.decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            return malformed();
        }
    }

    /** Jetty decodes forms in these encodings, and no others. */
    private static boolean isKnownToJetty(Charset charset) {
        return charset.equals(StandardCharsets.UTF_8) || charset.equals(StandardCharsets.ISO_8859_1);
    }

    private static boolean isAscii(byte[] bytes) {
        for (byte b : bytes) {
            if (b < 0) {
                return false;
            }
        }
        return true;
    }

    private @Nullable String malformed() {
        if (strict) {
            throw new MalformedFormException("the form has a parameter that cannot be decoded");
        }
        return null;
    }

    /** The bytes of a URL-encoded text, whose characters are bytes; null if it is not encoded properly. */
    static byte @Nullable [] unescaped(String text) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(text.length());
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '%') {
                int high = i + 2 < text.length() ? Character.digit(text.charAt(i + 1), 16) : -1;
                int low = i + 2 < text.length() ? Character.digit(text.charAt(i + 2), 16) : -1;
                if (high < 0 || low < 0) {
                    return null;
                }
                bytes.write(high << 4 | low);
                i += 2;
            } else {
                bytes.write(c == '+' ? ' ' : c);
            }
        }
        return bytes.toByteArray();
    }

    private static String[] joined(String[] first, String[] second) {
        String[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }
}
