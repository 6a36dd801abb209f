package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Functions that read {@code Content-Type} values. */
final class MediaTypes {
    private static final Pattern BOUNDARY =
            Pattern.compile(";[ \t]*boundary=(?:\"([^\"]{1,70})\"|([^\\s;\"]{1,70}))", Pattern.CASE_INSENSITIVE);

    private static final Pattern CHARSET = Pattern.compile(";[ \t]*charset=\"?([^\\s;\"]+)", Pattern.CASE_INSENSITIVE);

    private MediaTypes() {}

    /** Returns the Content-Type of a request. Jetty's own method fails if the charset in it is unknown. */
    static @Nullable String of(HttpServletRequest request) {
        return request.getHeader("Content-Type");
    }

    static String withoutParameters(@Nullable String contentType) {
        if (contentType == null) {
            return "";
        }
        int end = contentType.indexOf(';');
        return (end < 0 ? contentType : contentType.substring(0, end)).trim().toLowerCase(Locale.ROOT);
    }

    static boolean isForm(@Nullable String contentType) {
        return withoutParameters(contentType).equals("application/x-www-form-urlencoded");
    }

    static boolean isMultipart(@Nullable String contentType) {
        return withoutParameters(contentType).startsWith("multipart/");
    }

    /** The charset of a type, or null. */
    static @Nullable String charset(@Nullable String contentType) {
        Matcher matcher = CHARSET.matcher(contentType == null ? "" : contentType);
        return matcher.find() ? matcher.group(1) : null;
    }

    /** The boundary of a multipart type (RFC 2046: 1 to 70 characters), or null. */
    static @Nullable String boundary(@Nullable String contentType) {
        if (contentType == null || !isMultipart(contentType)) {
            return null;
        }
        Matcher matcher = BOUNDARY.matcher(contentType);
        if (!matcher.find()) {
            return null;
        }
        return matcher.group(1) != null ? matcher.group(1) : matcher.group(2);
    }
}
