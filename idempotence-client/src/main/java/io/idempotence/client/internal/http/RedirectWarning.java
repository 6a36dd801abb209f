package io.idempotence.client.internal.http;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;

/** The warning that a redirect of a call with an ID to another origin is not followed. It is logged once. Thread-safe. */
public final class RedirectWarning {
    private final Logger log;
    private final AtomicBoolean logged = new AtomicBoolean();

    /** @param log the logger of the HTTP client library's half */
    public RedirectWarning(Logger log) {
        this.log = log;
    }

    /** @param target the origin that the call is not sent to */
    public void notFollowed(HttpOrigin target) {
        if (logged.compareAndSet(false, true)) {
            log.warn(
                    "A call that carries an ID was redirected to another origin, {}, and is not sent there: the redirect is its"
                            + " response. Call that origin directly, or give such calls no ID (with Feign: @Idempotent(false))",
                    target);
        }
    }
}
