package io.idempotence.client.feign;

import feign.BaseBuilder;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.RedirectRule;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.internal.ThreadBound;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The state that interceptor, client and method handlers of one builder share.
 *
 * @param sending the watch of the request that a thread passes to the HTTP client
 */
record Installation(
        IdempotenceClientConfig config,
        FeignInternals feign,
        CallLookup calls,
        OneTimeWarnings warnings,
        RedirectRule redirects,
        CallThreads threads,
        Watchdog watchdog,
        ThreadBound<Watch> sending) {
    static Installation of(IdempotenceClientConfig config, BaseBuilder<?, ?> builder) {
        CallThreads threads = new CallThreads();
        Logger log = LoggerFactory.getLogger(IdempotentFeign.class);
        return new Installation(
                config,
                new FeignInternals(builder),
                new CallLookup(),
                new OneTimeWarnings(),
                new RedirectRule(log),
                threads,
                new Watchdog(threads, log),
                new ThreadBound<>());
    }
}
