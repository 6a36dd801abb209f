package io.idempotence.server.servlet;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The statuses of failures that have had an error page of the application. The Servlet API does not name the pages, and a container may end
 * the dispatch of a failure before the page begins. Thread-safe.
 */
final class ErrorPages {
    private final Set<Integer> statuses = ConcurrentHashMap.newKeySet();

    void seen(int status) {
        statuses.add(status);
    }

    boolean follow(int status) {
        return statuses.contains(status);
    }
}
