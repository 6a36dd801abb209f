package io.idempotence.server.servlet;

/**
 * What a filter gives to each of its protected requests.
 *
 * @param seesDispatches whether the filter sees every dispatch of its requests
 * @param seesRequestEnds whether a request is told when its dispatches have ended
 */
record FilterParts(
        FilterConfiguration config,
        ProblemWriter problems,
        BypassWarning bypass,
        boolean seesDispatches,
        boolean seesRequestEnds) {}
