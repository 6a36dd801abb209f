package io.idempotence.server.servlet;

import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.Part;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The rules by which a container turns the body of a form into parameters. A container cannot parse a body that was already read, and this
 * filter must read the body before the handler may run.
 */
enum FormRules {
    /** Tomcat 11 refuses malformed parameters with a 400. */
    TOMCAT_11(Set.of("POST"), StandardCharsets.ISO_8859_1, true, 1000, 2 << 20),
    /** Tomcat 10.1 omits malformed parameters. */
    TOMCAT_10(Set.of("POST"), StandardCharsets.ISO_8859_1, false, 10_000, 2 << 20),
    /**
     * Jetty 12.1 takes the encoding only from Content-Type, unless that encoding is unknown. It refuses malformed parameters with a 400.
     */
    JETTY_12_1(Set.of("POST", "PUT"), StandardCharsets.UTF_8, true, 1000, 200_000),
    /** Jetty 12.0 takes the encoding only from Content-Type. It refuses malformed parameters with a 400. */
    JETTY_12_0(Set.of("POST", "PUT"), StandardCharsets.UTF_8, true, 1000, 200_000),
    /** Undertow omits malformed parameters and keeps empty ones. Too many parameters are a failure of the handler. */
    UNDERTOW(Set.of(), StandardCharsets.ISO_8859_1, false, 1000, Integer.MAX_VALUE);

    /** The bytes that a value takes besides its characters: a string and its place in a list. */
    private static final int VALUE = 64;

    /** The exceptions for malformed parameters, by the names of their classes. */
    private static final Set<String> REFUSALS_OF_TOMCAT =
            Set.of("org.apache.tomcat.util.http.InvalidParameterException");

    /** The first one up to Jetty 12.1.5, then the others. */
    private static final Set<String> REFUSALS_OF_JETTY = Set.of(
            "org.eclipse.jetty.http.BadMessageException",
            "org.eclipse.jetty.http.HttpException$IllegalArgumentException",
            "org.eclipse.jetty.http.HttpException$IllegalStateException");

    @SuppressWarnings("ImmutableEnumChecker") // Set.of
    private final Set<String> methods;

    private final Charset standard;
    private final boolean strict;
    private final int maxParameters;
    private final int maxSize;

    /**
     * @param methods the methods whose forms are parsed; empty for all
     * @param maxParameters the container's default limit; Jetty counts names
     * @param maxSize the container's default limit, in bytes
     */
    FormRules(Set<String> methods, Charset standard, boolean strict, int maxParameters, int maxSize) {
        this.methods = methods;
        this.standard = standard;
        this.strict = strict;
        this.maxParameters = maxParameters;
        this.maxSize = maxSize;
    }

    /**
     * The limits of a form.
     *
     * @param parameters how many it may have; Jetty counts their names; negative for the container's default
     * @param bytes how large it may be; negative for the container's default
     */
    record Limits(int parameters, int bytes) {}

    /** A form that the container would refuse. */
    static final class MalformedFormException extends IllegalStateException {
        private static final long serialVersionUID = 1L;
        private final int status;

        MalformedFormException(int status, String message) {
            super(message);
            this.status = status;
        }

        /** The status that the container would send. */
        int status() {
            return status;
        }
    }

    /** Returns the rules of a request's container; null if they are unknown, so that only the container itself can parse its forms. */
    static @Nullable FormRules of(HttpServletRequest request) {
        ServletRequest container = Wrappers.innermost(request);
        String name = container.getClass().getName();
        if (name.startsWith("org.apache.catalina.")) {
            return request.getServletContext().getMinorVersion() == 0 ? TOMCAT_10 : TOMCAT_11;
        }
        if (name.startsWith("org.eclipse.jetty.")) {
            return request.getServletContext().getServerInfo().startsWith("jetty/12.0.") ? JETTY_12_0 : JETTY_12_1;
        }
        return name.startsWith("io.undertow.") ? UNDERTOW : null;
    }

    /** Returns the status that the container sends if this exception ends a handler that reads malformed parameters; 0 for any other. */
    int refusalOf(Throwable thrown) {
        if (thrown instanceof MalformedFormException malformed) {
            return malformed.status();
        }
        boolean isMalformed = this == TOMCAT_11
                ? isBadRequest(thrown, REFUSALS_OF_TOMCAT, "getErrorCode")
                : isJetty() && isBadRequest(thrown, REFUSALS_OF_JETTY, "getCode");
        return isMalformed ? HttpServletResponse.SC_BAD_REQUEST : 0;
    }

    /** Whether this is an exception of a container, and has the status 400. Their classes are also used with other statuses. */
    private static boolean isBadRequest(Throwable thrown, Set<String> types, String getter) {
        try {
            return types.contains(thrown.getClass().getName())
                    && thrown.getClass().getMethod(getter).invoke(thrown) instanceof Integer status
                    && status == HttpServletResponse.SC_BAD_REQUEST;
        } catch (ReflectiveOperationException e) {
            return false;
        }
    }

    boolean isJetty() {
        return this == JETTY_12_1 || this == JETTY_12_0;
    }

    private boolean isTomcat() {
        return this == TOMCAT_11 || this == TOMCAT_10;
    }

    /** Whether a reader fails on bytes that are invalid in the encoding of the request. */
    boolean readsStrictly() {
        return isTomcat();
    }

    /** Whether the container would parse the body of a request as a form. Its own method counts, not one that a filter in front sets. */
    boolean parses(HttpServletRequest request) {
        return MediaTypes.isForm(MediaTypes.of(request))
                && (methods.isEmpty()
                        || methods.contains(((HttpServletRequest) Wrappers.innermost(request)).getMethod()));
    }

    // ---- parts

    /** Whether the order of parameters from the query and from parts depends on which of them the handler reads first. */
    boolean ordersParametersByReading() {
        return isTomcat();
    }

    /** Whether the container keeps the bytes of texts, and not only their characters. */
    boolean keepsBytesOfTexts() {
        return this != UNDERTOW;
    }

    /** Whether the names of parts and of files depend on the encoding of the request. */
    boolean decodesNamesOfParts() {
        return !isJetty();
    }

    /** The encoding of the names of parts, and of their headers. */
    Charset charsetOfNames(@Nullable String encoding) {
        return encoding == null && isTomcat() ? Charset.defaultCharset() : charsetOfParts(encoding);
    }

    /** The encoding of parts in a request of this encoding. */
    Charset charsetOfParts(@Nullable String encoding) {
        return known(encoding, standard);
    }

    /** The encoding of the text of parts that do not declare their own. */
    Charset charsetOfTexts(Collection<Part> parts, @Nullable String encoding) {
        Charset charset = charsetOfParts(encoding);
        for (Part part : isJetty() ? parts : List.<Part>of()) {
            if ("_charset_".equals(part.getName())) {
                return known(new String(bytes(part), StandardCharsets.UTF_8), charset);
            }
        }
        return charset;
    }

    /** The encoding of a part's text. */
    Charset charsetOfText(Part part, Charset otherwise) {
        return isTomcat() ? otherwise : known(MediaTypes.charset(part.getContentType()), otherwise);
    }

    private static Charset known(@Nullable String name, Charset otherwise) {
        try {
            return name == null ? otherwise : Charset.forName(name);
        } catch (IllegalArgumentException unknown) {
            return otherwise;
        }
    }

    static byte[] bytes(Part part) {
        try (InputStream in = part.getInputStream()) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException("a part that the container has parsed cannot be read", e);
        }
    }

    // ---- forms

    private static int most(int ofContainer, int limit) {
        return limit < 0 ? ofContainer : limit;
    }

    /** The most memory that the parameters of a form take, besides its bytes. */
    long memoryOfParameters(byte[] form, Limits limits) {
        if (form.length > most(maxSize, limits.bytes)) {
            return 0;
        }
        long values = 1;
        for (byte b : form) {
            values += b == '&' ? 1 : 0;
        }
        // Jetty limits names, and one name may have any number of values.
        long parsed = isJetty() ? values : Math.min(values, most(maxParameters, limits.parameters));
        return 2L * form.length + parsed * VALUE;
    }

    /**
     * Parses the parameters of a form.
     *
     * @param contentType the Content-Type of the form
     * @param encoding the encoding of the request when the first parameter is read; null if none is set
     * @param before how many parameters the query has
     * @throws MalformedFormException if the container would refuse the form, or if it has more than the limits allow
     */
    Map<String, String[]> parse(
            byte[] form, @Nullable String contentType, @Nullable String encoding, int before, Limits limits) {
        int most = most(maxSize, limits.bytes);
        if (form.length > most) {
            // Tomcat 10.1 would omit all parameters, and no handler would notice.
            throw new MalformedFormException(
                    isJetty() ? HttpServletResponse.SC_BAD_REQUEST : HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE,
                    "the form has " + form.length + " bytes, and " + most
                            + " are allowed; allow more with IdempotenceFilterBuilder.maxFormSize");
        }
        String declared = MediaTypes.charset(contentType);
        boolean isSet = encoding != null && !encoding.equals(declared);
        Charset charset = charset(isJetty() ? declared : encoding, isSet);
        Map<String, List<String>> values = new LinkedHashMap<>();
        Set<String> names = new HashSet<>();
        int parsed = before;
        int mostParameters = most(maxParameters, limits.parameters);
        boolean takesEmpty = isJetty() || this == UNDERTOW;
        String text = new String(form, StandardCharsets.ISO_8859_1);
        for (int start = 0; start <= text.length(); ) {
            int ampersand = text.indexOf('&', start);
            int end = ampersand < 0 ? text.length() : ampersand;
            boolean isEmpty = start == end && (!takesEmpty || ampersand < 0);
            if (!isEmpty) {
                if (!isJetty() && ++parsed > mostParameters) {
                    throw tooMany(mostParameters);
                }
                String pair = text.substring(start, end);
                int equals = pair.indexOf('=');
                String name = decoded(equals < 0 ? pair : pair.substring(0, equals), charset);
                String value = equals < 0 ? "" : decoded(pair.substring(equals + 1), charset);
                if (isJetty() && name != null && names.add(name) && names.size() > mostParameters) {
                    throw tooMany(mostParameters);
                }
                if (name != null && value != null && !isRefused(name)) {
                    values.computeIfAbsent(name, first -> new ArrayList<>(1)).add(value);
                }
            }
            start = end + 1;
        }
        Map<String, String[]> parameters = new LinkedHashMap<>();
        values.forEach((name, all) -> parameters.put(name, all.toArray(String[]::new)));
        return parameters;
    }

    /** Returns the failure for too many parameters. Tomcat 10.1 would omit the rest, and no handler would notice. */
    private RuntimeException tooMany(int most) {
        String message = "the request has more than " + most
                + " parameters; allow more with IdempotenceFilterBuilder.maxFormParameters";
        return this == UNDERTOW ? new IllegalStateException(message) : malformed(message);
    }

    private static MalformedFormException malformed(String message) {
        return new MalformedFormException(HttpServletResponse.SC_BAD_REQUEST, message);
    }

    private Charset charset(@Nullable String name, boolean isSet) {
        if (name == null) {
            return standard;
        }
        try {
            return Charset.forName(name);
        } catch (IllegalArgumentException unknown) {
            if (this == JETTY_12_0 || (this == JETTY_12_1 && !isSet)) {
                throw malformed("the form is in an unknown character encoding");
            }
            return standard;
        }
    }

    /** Whether the container omits a parameter because it has no name. Tomcat 11 refuses the whole form instead. */
    private boolean isRefused(String name) {
        if (this == TOMCAT_11 && name.isEmpty()) {
            throw malformed("the form has a parameter without a name");
        }
        return this == TOMCAT_10 && name.isEmpty();
    }

    private @Nullable String decoded(String text, Charset charset) {
        byte[] bytes = unescaped(text);
        if (bytes == null) {
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

    private @Nullable String malformed() {
        if (strict) {
            throw malformed("the form has a parameter that cannot be decoded");
        }
        return null;
    }

    /** Returns the bytes of a URL-encoded text, each of whose characters is a byte; null if an escape is invalid. */
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

    static String[] joined(String[] first, String[] second) {
        String[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }
}
