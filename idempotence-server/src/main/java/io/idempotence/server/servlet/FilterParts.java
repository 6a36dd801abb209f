package io.idempotence.server.servlet;

/**
 * The parts of a filter that each of its protected requests uses.
 *
 * @param errorPages which failures have error pages, as far as the filter has seen them
 * @param seesDispatches whether the filter sees every dispatch of its requests
 * @param seesRequestEnds whether the container reports when the dispatches of a request have ended
 */
record FilterParts(
        FilterConfiguration config,
        ProblemWriter problems,
        BypassWarning bypass,
        ErrorPages errorPages,
        boolean seesDispatches,
        boolean seesRequestEnds) {}
