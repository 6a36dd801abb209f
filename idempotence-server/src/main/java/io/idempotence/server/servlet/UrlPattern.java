package io.idempotence.server.servlet;

import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A pattern of paths. It covers what a filter mapping covers (Jakarta Servlet 6, section 12.2), and a name in braces matches one segment of
 * the path. A slash at the end makes no difference, because some frameworks ignore it.
 */
final class UrlPattern {
    private static final Pattern SPECIAL = Pattern.compile("(\\{[A-Za-z][A-Za-z0-9]*})|[^{}]+|[{}]");

    private final Pattern paths;

    private UrlPattern(Pattern paths) {
        this.paths = paths;
    }

    /** @throws IllegalArgumentException if {@code pattern} is not a URL pattern */
    static UrlPattern of(String pattern) {
        boolean extension = pattern.startsWith("*.");
        if (!pattern.isEmpty() && !pattern.startsWith("/") && !extension) {
            throw malformed(pattern, "it must begin with '/' or '*.'");
        }
        boolean prefix = pattern.endsWith("/*");
        String plain = extension ? pattern.substring(2) : prefix ? pattern.substring(0, pattern.length() - 2) : pattern;
        if (plain.contains("*")) {
            throw malformed(
                    pattern,
                    "'*' is allowed only in a last '/*' or a first '*.'; write {name} for a segment in between");
        }
        if (!prefix && plain.endsWith("/")) {
            plain = plain.substring(0, plain.length() - 1);
        }
        String regex = SPECIAL.matcher(plain).replaceAll(part -> literally(pattern, part));
        if (extension) {
            regex = "(?s).*/[^/]*\\." + regex;
        } else if (prefix) {
            regex = "(?s)" + regex + "(?:/.*)?";
        } else {
            regex += "/?";
        }
        return new UrlPattern(Pattern.compile(regex));
    }

    /** Parses the pattern of a filter mapping. A container takes braces literally, so a mapping with braces would protect nothing. */
    static UrlPattern ofMapping(String pattern) {
        if (pattern.contains("{")) {
            throw malformed(
                    pattern, "a filter mapping cannot have a {name}; map the part before it, as in /accounts/*");
        }
        return of(pattern);
    }

    private static String literally(String pattern, MatchResult part) {
        if (part.group(1) != null) {
            return "[^/]+";
        }
        if (part.group().equals("{") || part.group().equals("}")) {
            throw malformed(pattern, "a brace is not part of a name in braces; write {name} for a segment");
        }
        return Matcher.quoteReplacement(Pattern.quote(part.group()));
    }

    private static IllegalArgumentException malformed(String pattern, String why) {
        return new IllegalArgumentException("'" + pattern + "' is not a URL pattern: " + why
                + "; for example /payments, /payments/*, /accounts/{id}/charges, *.do");
    }

    /**
     * Returns the mappings that a container needs. A mapping without a {@code *} matches its path exactly, so such a pattern has two: with
     * and without a last slash.
     */
    static Stream<String> mappings(String pattern) {
        if (pattern.contains("*") || pattern.length() < 2) {
            return Stream.of(pattern);
        }
        return Stream.of(pattern, pattern.endsWith("/") ? pattern.substring(0, pattern.length() - 1) : pattern + "/");
    }

    /** @param path the path that {@link OriginalPath#inContext} returns */
    boolean covers(String path) {
        return paths.matcher(path).matches();
    }
}
