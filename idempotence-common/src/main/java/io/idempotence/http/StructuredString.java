package io.idempotence.http;

import java.util.regex.Pattern;

/** A Structured Field Item of type String with parameters (RFC 9651, sections 4.2.3 and 4.2.5). */
final class StructuredString {
    /**
     * The parameters, whose values are decimals or integers, strings, tokens, byte sequences, booleans, dates or display strings. Every
     * quantifier is possessive or over disjoint characters, so matching is linear in a line whose length is capped.
     */
    private static final Pattern PARAMETERS = Pattern.compile("(?:; *[a-z*][a-z0-9_.*-]*+(?:=(?:"
            + "-?[0-9]{1,12}\\.[0-9]{1,3}"
            + "|-?[0-9]{1,15}"
            + "|\"(?:[ !#-\\[\\]-~]|\\\\[\"\\\\])*+\""
            + "|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*+"
            + "|:[A-Za-z0-9+/]*+=*+:"
            + "|\\?[01]"
            + "|@-?[0-9]{1,15}"
            + "|%\"(?:[ !#$&-~]|%[0-9a-f]{2})*+\""
            + "))?+)*+");

    private StructuredString() {}

    static String parse(String value) {
        int close = closingQuote(value);
        int after = close + 1;
        if (after < value.length()
                && !PARAMETERS.matcher(value).region(after, value.length()).matches()) {
            throw new InvalidIdempotencyKeyException("only parameters of RFC 9651 may follow the closing quote");
        }
        String escaped = value.substring(1, close);
        return escaped.indexOf('\\') < 0 ? escaped : unescaped(escaped);
    }

    /** Returns the index of the closing quote, after a check of all characters before it. */
    private static int closingQuote(String value) {
        for (int i = 1; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"') {
                return i;
            }
            if (c == '\\') {
                i++;
                char escaped = i < value.length() ? value.charAt(i) : 0;
                if (escaped != '"' && escaped != '\\') {
                    throw new InvalidIdempotencyKeyException("only a quote or a backslash may follow a backslash");
                }
            } else if (c < ' ' || c > '~') {
                throw new InvalidIdempotencyKeyException("character " + (i + 1) + " is not printable ASCII");
            }
        }
        throw new InvalidIdempotencyKeyException("the closing quote is missing");
    }

    private static String unescaped(String escaped) {
        StringBuilder plain = new StringBuilder(escaped.length());
        for (int i = 0; i < escaped.length(); i++) {
            if (escaped.charAt(i) == '\\') {
                i++;
            }
            plain.append(escaped.charAt(i));
        }
        return plain.toString();
    }

    static String format(String value) {
        StringBuilder encoded = new StringBuilder(value.length() + 2).append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                encoded.append('\\');
            }
            encoded.append(c);
        }
        return encoded.append('"').toString();
    }
}
