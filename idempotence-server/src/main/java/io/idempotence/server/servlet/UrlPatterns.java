package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.util.List;

/** Which requests the patterns of a filter cover (Jakarta Servlet 6, section 12.2). */
final class UrlPatterns {
    private final List<String> patterns;

    UrlPatterns(List<String> patterns) {
        this.patterns = patterns;
    }

    boolean cover(HttpServletRequest request) {
        String info = request.getPathInfo();
        String path = info == null ? request.getServletPath() : request.getServletPath() + info;
        return patterns.stream().anyMatch(pattern -> covers(pattern, path));
    }

    static boolean covers(String pattern, String path) {
        if (pattern.equals("/*")) {
            return true;
        }
        if (pattern.endsWith("/*")) {
            String prefix = pattern.substring(0, pattern.length() - 2);
            return path.equals(prefix) || path.startsWith(prefix + "/");
        }
        if (pattern.startsWith("*.")) {
            return path.endsWith(pattern.substring(1)) && path.lastIndexOf('/') < path.length() - pattern.length() + 1;
        }
        return pattern.equals(path) || (pattern.isEmpty() && path.equals("/"));
    }
}
