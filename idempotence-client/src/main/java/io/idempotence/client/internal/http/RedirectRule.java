package io.idempotence.client.internal.http;

import io.idempotence.http.IdempotenceHeaders;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;

/**
 * The rule for redirects of the requests of a client that carry an ID (RFC 9110, section 15.4). The ID is only for the origin of its call.
 * Thread-safe.
 */
public final class RedirectRule {
    /** The most redirects of one request that are followed. */
    public static final int MOST = 20;

    private final Logger log;
    private final AtomicBoolean warned = new AtomicBoolean();

    /** @param log the logger of the HTTP client library's half */
    public RedirectRule(Logger log) {
        this.log = log;
    }

    /**
     * Warns, once, that a redirect to another origin is not followed.
     *
     * @param target the origin that the call is not sent to
     */
    public void notFollowed(HttpOrigin target) {
        if (warned.compareAndSet(false, true)) {
            log.warn(
                    "A call that carries an ID was redirected to another origin, {}, and is not sent there: the redirect is its"
                            + " response. Call that origin directly, or give such calls no ID (with Feign: @Idempotent(false))",
                    target);
        }
    }

    /**
     * Whether a redirect within the origin is followed. Records what it means for the call.
     *
     * @param redirect has the redirect as its response
     * @param unexecuted whether the redirect {@linkplain #showsNoExecution shows} that its request was not executed
     * @param inDoubt whether an earlier attempt of the call is
     * @param toItself whether the next request would be the very same one
     * @param wanted whether somebody still waits for the result, and there is time for another request
     */
    public static boolean follows(
            Observation redirect, boolean unexecuted, boolean inDoubt, boolean toItself, boolean wanted) {
        boolean settles = settles(redirect, unexecuted, inDoubt);
        if (!unexecuted) {
            // The request may have been executed, whatever the next one returns.
            redirect.mayHaveBeenSentBefore();
        }
        if (toItself) {
            return false;
        }
        if (!settles || !wanted) {
            redirect.redirectNotFollowed();
            return false;
        }
        return true;
    }

    /** Whether a status asks for the same request at another address. */
    public static boolean repeatsRequest(int status) {
        return status == 307 || status == 308;
    }

    /** Whether a client that follows a redirect sends the same request. After a 301 or 302 only a POST becomes a GET. */
    public static boolean repeatsRequest(int status, String method) {
        return repeatsRequest(status) || method.equals("GET") || (status != 303 && !method.equals("POST"));
    }

    /**
     * Whether a redirect shows that its request was not executed. A 301 or 302 does not, whichever method follows: the response of an
     * operation may be one.
     */
    public static boolean showsNoExecution(int status, String method) {
        return repeatsRequest(status) || method.equals("GET");
    }

    /** Whether HTTP clients follow a status with a GET, or, depending on the method, with the same request. */
    public static boolean mayBecomeGet(int status) {
        return status >= 301 && status <= 303;
    }

    /** Whether a header describes the body or carries the ID. The GET that follows a redirect has neither (RFC 9110, section 15.4). */
    public static boolean isLeftOutOfAGet(String header) {
        String name = header.toLowerCase(Locale.ROOT);
        return name.startsWith("content-")
                || name.equals("transfer-encoding")
                || name.equalsIgnoreCase(IdempotenceHeaders.IDEMPOTENCY_KEY)
                || name.equalsIgnoreCase(IdempotenceHeaders.IDEMPOTENCY_ATTEMPT);
    }

    /**
     * Whether following the redirect shows the outcome of the call. A login redirects before the operation sees the request. The GET that
     * follows then shows nothing about an earlier attempt in doubt, unless the redirect is a stored response.
     *
     * @param redirect has the redirect as its response; the other parameters are those of {@link #follows}
     */
    public static boolean settles(Observation redirect, boolean unexecuted, boolean inDoubt) {
        return unexecuted || redirect.isReplayed() || !(inDoubt || redirect.hasEarlierDoubt());
    }
}
