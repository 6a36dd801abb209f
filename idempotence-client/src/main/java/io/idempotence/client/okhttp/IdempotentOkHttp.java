package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceClientConfig;
import java.util.Objects;
import okhttp3.OkHttpClient;
import org.jspecify.annotations.Nullable;

/**
 * Gives every logical call of an OkHttp client one idempotence ID and keeps it on every attempt (promise P1).
 *
 * <pre>{@code
 * OkHttpClient client = IdempotentOkHttp.install(new OkHttpClient.Builder()).build();
 * }</pre>
 *
 * <p><b>Which calls carry an ID:</b> POST and PATCH (see {@link IdempotenceClientConfig#methods()}, which can add PUT and
 * DELETE), and other calls whose caller gives an {@code Idempotency-Key} header, but never GET, HEAD, OPTIONS and TRACE: from
 * those the header is removed. A call without an ID behaves as if nothing were installed: no retries, no deadline, no event,
 * and OkHttp's own responses, exceptions and redirects.
 *
 * <p><b>Which ID:</b> the caller's header, else {@link io.idempotence.client.IdempotenceScope}, else derived from the {@link
 * io.idempotence.InboundRequest} whose handler makes the call, else a new one. Scope and request are
 * those of the thread that executes the call, else those of the thread that made it with {@code newCall}, so {@code enqueue}
 * inside a scope carries its ID. Within a scope, the same call is the same HTTP method and the same URL without its query. One
 * {@code Call} keeps its ID and its doubt when an interceptor in front proceeds again with the same method and path, whatever the
 * host and the query.
 *
 * <p><b>What is retried:</b> as with Feign: requests that certainly were not sent, I/O failures after connecting, and the
 * statuses of {@link IdempotenceClientConfig#statuses()} unless the response is a stored one. An execution in progress is polled
 * within the attempt. Attempts, waits and polls end at {@link IdempotenceClientConfig#deadline()}, or shortly before the client's
 * {@code callTimeout} if that is shorter, also if the peer takes or sends one byte now and then. Timeouts of an attempt, and with
 * them those of its response's body, are cut to what is left. Use a client without idempotence for streams that pause for longer. What OkHttp sends again by itself carries the same ID
 * and is part of the attempt.
 *
 * <p><b>Bodies</b> are written by their {@code RequestBody} straight to the wire. Up to 1 MiB is captured meanwhile and repeated byte
 * by byte. A longer body of known length is written again for each attempt. A longer body of unknown length, and one that
 * {@code isOneShot()} or {@code isDuplex()}, is sent once: after that there is no further attempt. Only inside an {@link
 * io.idempotence.InboundRequest}, a body of known length up to 1 MiB is read before it is sent, because its content is part of the
 * derived ID; for others, the order of equal calls is.
 *
 * <p><b>How a call ends</b> (promise P7), from {@code execute()} or in the callback of {@code enqueue}:
 *
 * <ul>
 *   <li>with a response, error statuses included, as OkHttp does; responses that were retried are closed. Its body may
 *       still be cut while it is read: then make the call again under the same ID.
 *   <li>with {@link OkHttpRequestRefusedException}, if the server half refused.
 *   <li>with {@link OkHttpOutcomeUnknownException}, if the call may have been executed and nothing after settled it. A
 *       status that a login or a gateway may have given before the operation saw the request (401, 403, 404, 413 and the like), or one of
 *       {@link IdempotenceClientConfig#statuses()}, does not settle an earlier attempt unless it is a stored response.
 *   <li>with the usual {@code IOException}, if nothing was sent, or if the request body failed, so that the request was not
 *       complete. A header that is no ID, an ID that two calls would share, an interceptor that changes the ID, a body that cannot be
 *       written again, and settings for the URL's host that do not fit each other are {@code IOException}s, too.
 * </ul>
 *
 * <p>Both exceptions are {@code IOException}s. A retry on {@code IOException} around the client makes a new call, with a new ID,
 * also where the outcome is unknown: put it inside {@link io.idempotence.client.IdempotenceScope#with}. A call in doubt that is made
 * again under a new ID is a warning, once per client and HTTP method.
 *
 * <p>{@code Call.cancel()} and an interrupt end the call at once; there is no further attempt, and an interrupted thread keeps its
 * flag. If {@code callTimeout} itself ends the call, OkHttp throws its {@code InterruptedIOException}, whose cause is one of
 * the above.
 *
 * <p><b>Redirects:</b> a call with an ID is not redirected to another origin (scheme, host or port): the 3xx is its response, and
 * one warning names the origin. Within the origin OkHttp follows as usual: 307 and 308 keep request and ID, 301, 302 and 303
 * lead to a GET without an ID, whose response is the call's, also if it is a login page. While an earlier attempt may have
 * been executed, such a GET is not sent unless its redirect was a stored response, and the outcome stays unknown.
 *
 * <p><b>Web sockets</b> pass untouched.
 *
 * <p><b>Putting it together:</b> call {@code install} once, after {@code eventListener} or {@code eventListenerFactory}, which
 * it wraps. Interceptors added before see the call once and no ID; those added after see each attempt with its ID and must not
 * change it, and no {@code Location} of a redirect that is not followed. A Feign client with {@link
 * io.idempotence.client.feign.IdempotentFeign} over this client keeps its own ID and retries, unless an {@code AsyncClient} or
 * {@code Client} that is not Feign's own hands the request to another thread: then install one of the two only. What is called
 * on the way, such as a token that an authenticator fetches, is a call of its own. Do not wrap the dispatcher's executor so
 * that it hands scopes on: a thread that ends one call starts the next one.
 */
public final class IdempotentOkHttp {
    private IdempotentOkHttp() {}

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the client to be
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if a loaded setting is wrong
     * @throws IllegalStateException if it is installed already
     */
    public static OkHttpClient.Builder install(OkHttpClient.Builder builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. In config, budgets, retries and events the client of a call has the name of the URL's host,
     * with {@code :port} if that is not the scheme's own.
     *
     * @param builder the client to be
     * @param config the settings
     * @return {@code builder}
     * @throws IllegalStateException if it is installed already
     */
    public static OkHttpClient.Builder install(OkHttpClient.Builder builder, IdempotenceClientConfig config) {
        return installAll(builder, Objects.requireNonNull(config, "config"), null);
    }

    /**
     * Installs with given settings and one name for all hosts.
     *
     * @param builder the client to be
     * @param config the settings
     * @param name the client's name in config, budgets, retries and events
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if settings under the name do not fit each other
     * @throws IllegalStateException if it is installed already
     */
    public static OkHttpClient.Builder install(
            OkHttpClient.Builder builder, IdempotenceClientConfig config, String name) {
        return installAll(builder, Objects.requireNonNull(config, "config"), Objects.requireNonNull(name, "name"));
    }

    private static OkHttpClient.Builder installAll(
            OkHttpClient.Builder builder, IdempotenceClientConfig config, @Nullable String name) {
        if (builder.interceptors().stream().anyMatch(IdempotenceInterceptor.class::isInstance)) {
            throw new IllegalStateException("IdempotentOkHttp.install was called twice on this builder; call it once");
        }
        Callers callers = new Callers(builder.build().eventListenerFactory());
        WireInterceptor wire = new WireInterceptor();
        return builder.eventListenerFactory(callers)
                .addInterceptor(new IdempotenceInterceptor(new OkHttpTargets(config, name), callers, wire))
                .addNetworkInterceptor(wire);
    }
}
