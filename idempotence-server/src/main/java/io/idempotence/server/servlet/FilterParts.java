package io.idempotence.server.servlet;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/** The parts of a filter that its protected requests share, and what it has learned from earlier ones. Thread-safe. */
final class FilterParts {
    private final FilterConfiguration config;
    private final ProblemWriter problems;
    private final BooleanSupplier seesDispatches;
    private final BooleanSupplier seesRequestEnds;
    /** The Servlet API does not name the pages, and a container may end the dispatch of a failure before the page begins. */
    private final Set<Integer> statusesWithPage = ConcurrentHashMap.newKeySet();

    private final BypassWarning bypassWarning = new BypassWarning();

    FilterParts(
            FilterConfiguration config,
            ProblemWriter problems,
            BooleanSupplier seesDispatches,
            BooleanSupplier seesRequestEnds) {
        this.config = config;
        this.problems = problems;
        this.seesDispatches = seesDispatches;
        this.seesRequestEnds = seesRequestEnds;
    }

    FilterConfiguration config() {
        return config;
    }

    ProblemWriter problems() {
        return problems;
    }

    /** Whether the filter sees every dispatch of its requests. */
    boolean seesDispatches() {
        return seesDispatches.getAsBoolean();
    }

    /** Whether the container reports when the dispatches of a request have ended. */
    boolean seesRequestEnds() {
        return seesRequestEnds.getAsBoolean();
    }

    /** Notes that the application has an error page for failures of this status. */
    void hasErrorPage(int status) {
        statusesWithPage.add(status);
    }

    /** Whether failures of this status have had an error page of the application. */
    boolean isErrorWithPage(int status) {
        return statusesWithPage.contains(status);
    }

    /** The warning of filters in front that hide the fields of forms. */
    BypassWarning bypassWarning() {
        return bypassWarning;
    }
}
