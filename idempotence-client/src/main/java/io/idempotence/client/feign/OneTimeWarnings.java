package io.idempotence.client.feign;

import feign.Retryer;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The warnings about how a client is built, each logged once. */
final class OneTimeWarnings {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);
    private static final Set<String> USUAL_RETRYERS = Set.of("feign.Retryer$Default", "feign.DefaultRetryer");

    private final AtomicBoolean ofRetryer = new AtomicBoolean();
    private final AtomicBoolean ofRequest = new AtomicBoolean();
    private final AtomicBoolean ofArguments = new AtomicBoolean();

    void retryerIsReplaced(Retryer retryer) {
        boolean usual = retryer == Retryer.NEVER_RETRY
                || USUAL_RETRYERS.contains(retryer.getClass().getName());
        if (!usual && ofRetryer.compareAndSet(false, true)) {
            LOG.warn(
                    "The Retryer {} is used for calls without an ID only; configure the retries of the others with"
                            + " idempotence.client.retry",
                    retryer.getClass().getName());
        }
    }

    void requestIsOutsideOfACall() {
        if (ofRequest.compareAndSet(false, true)) {
            LOG.warn(
                    "A request was made outside of the call that IdempotentFeign opens: retries around it will NOT keep its ID."
                            + " Another capability or handler replaced the one of IdempotentFeign;"
                            + " call IdempotentFeign.install(builder) last");
        }
    }

    void argumentsAreCopied() {
        if (ofArguments.compareAndSet(false, true)) {
            LOG.warn(
                    "An invocation handler passed on a copy of the arguments, on another thread: retries around it will NOT keep the"
                            + " ID, and an IdempotenceScope is not seen. Pass on the array itself");
        }
    }
}
