package io.idempotence.server.servlet;

/**
 * The parts of a filter that each of its protected requests uses.
 *
 * @param seesDispatches whether the filter sees every dispatch of its requests
 * @param seesRequestEnds whether the container reports when the dispatches of a request have ended
 */
record FilterParts(
        FilterConfiguration config,
        ProblemWriter problems,
        BypassWarning bypass,
        boolean seesDispatches,
        boolean seesRequestEnds) {}
