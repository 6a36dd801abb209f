package io.idempotence.client.internal.http;

import io.idempotence.http.IdempotenceHeaders;
import java.util.Locale;

/** The rule for redirects of a request that carries an ID (RFC 9110, section 15.4). The ID is only for the origin of its call. */
public final class RedirectRule {
    /** The most redirects of one request that are followed. */
    public static final int MOST = 20;

    private RedirectRule() {}

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

    /** Whether a header is about the body or the ID, which the GET that follows a redirect has not (RFC 9110, section 15.4). */
    public static boolean isLeftOutOfAGet(String header) {
        String name = header.toLowerCase(Locale.ROOT);
        return name.startsWith("content-")
                || name.equals("transfer-encoding")
                || name.equalsIgnoreCase(IdempotenceHeaders.IDEMPOTENCY_KEY)
                || name.equalsIgnoreCase(IdempotenceHeaders.IDEMPOTENCY_ATTEMPT);
    }

    /**
     * Whether the outcome of the call shows at the target. A login redirects before the operation sees the request, so the GET that follows
     * shows nothing about an earlier attempt in doubt, unless the redirect was stored.
     *
     * @param redirect has the redirect as its response
     * @param unexecuted whether the redirect {@linkplain #showsNoExecution shows} that its request was not executed
     * @param inDoubt whether an earlier attempt of the call is
     */
    public static boolean settles(Observation redirect, boolean unexecuted, boolean inDoubt) {
        return unexecuted || redirect.isReplayed() || !(inDoubt || redirect.hasEarlierDoubt());
    }
}
