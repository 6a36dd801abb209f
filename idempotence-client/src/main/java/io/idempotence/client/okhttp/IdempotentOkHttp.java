package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceClientConfig;
import java.util.Objects;
import okhttp3.OkHttpClient;
import org.jspecify.annotations.Nullable;

/**
 * The client half for OkHttp without Feign. It gives every logical call one idempotence ID and keeps it on every attempt (promise P1).
 *
 * <pre>{@code
 * OkHttpClient client = IdempotentOkHttp.install(new OkHttpClient.Builder()).build();
 * }</pre>
 *
 * <p><b>Set-up:</b> call {@code install} once, after {@code eventListener} or {@code eventListenerFactory}, which it wraps. Interceptors
 * added before see the call once and without an ID. Interceptors added after see each attempt with its ID, which they must not change.
 * They do not see the {@code Location} of a redirect that is not followed. A call made on the way, such as an authenticator's for a
 * token, is a call of its own. Do not wrap the dispatcher's executor so that it carries scopes: a thread that ends one call starts the
 * next one.
 *
 * <p><b>Under Feign:</b> a Feign client with {@link io.idempotence.client.feign.IdempotentFeign} over this client keeps its own ID and
 * retries. If a {@code Client} or {@code AsyncClient} that is not Feign's own hands requests to another thread, install only one of the
 * two.
 *
 * <p><b>Which calls carry an ID:</b> POST and PATCH (see {@link IdempotenceClientConfig#methods()}, which can add PUT and DELETE), and
 * other calls whose caller sets an {@code Idempotency-Key} header. GET, HEAD, OPTIONS and TRACE never carry one: the header is removed
 * from them. A call without an ID behaves as if nothing were installed: no retries, no deadline, no event, and OkHttp's own responses,
 * exceptions and redirects. Web sockets are not touched.
 *
 * <p><b>Which ID:</b> the caller's header, else that of {@link io.idempotence.client.IdempotenceScope}, else one derived from the {@link
 * io.idempotence.InboundRequest} whose handler makes the call, else a new one. Scope and request are those of the thread that executes
 * the call, else those of the thread that created it with {@code newCall}. So {@code enqueue} inside a scope carries its ID. Within a
 * scope, the same call is the same HTTP method and the same URL without its query.
 *
 * <p>One {@code Call} keeps its ID, and whether it is in doubt, when an interceptor added before proceeds again with the same method and
 * path, whatever the host and the query.
 *
 * <p><b>What is retried:</b> requests that certainly were not sent, I/O failures after connecting, and the statuses of {@link
 * IdempotenceClientConfig#statuses()}, unless the response is a stored one. An execution in progress is polled within the attempt. A
 * request that OkHttp repeats by itself has the same ID and is part of the attempt.
 *
 * <p><b>When a call ends at the latest:</b> at {@link IdempotenceClientConfig#deadline()}, or shortly before the client's {@code
 * callTimeout} if that is shorter, even if the peer still takes or sends a byte now and then. The timeouts of an attempt, and of reading
 * its response's body, are cut to what is left. For streams that pause for longer, use a client without idempotence.
 *
 * <p><b>Request bodies</b> are written by their {@code RequestBody} straight to the wire. Up to 1 MiB is captured meanwhile and repeated
 * byte by byte. A longer body of known length is written again for each attempt. A longer body of unknown length, and one that {@code
 * isOneShot()} or {@code isDuplex()}, is sent once, and no attempt follows. Inside an {@link io.idempotence.InboundRequest}, a body of
 * known length up to 1 MiB is read before it is sent, because its content is part of the derived ID. For other bodies the order of equal
 * calls is part of it.
 *
 * <p><b>How a call ends</b> (promise P7), from {@code execute()} or in the callback of {@code enqueue}:
 *
 * <ul>
 *   <li>With a response, error statuses included, as OkHttp does. Responses that were retried are closed. The body may still be cut while
 *       it is read: then make the call again under the same ID.
 *   <li>With {@link OkHttpRequestRefusedException}, if the server half refused.
 *   <li>With {@link OkHttpOutcomeUnknownException}, if the call may have been executed and no later response settled it. These do not
 *       settle an earlier attempt unless they are stored responses: the statuses of {@link IdempotenceClientConfig#statuses()}, and
 *       statuses that a login or a gateway may send before the operation sees the request (401, 403, 404, 413 and the like).
 *   <li>With the usual {@code IOException}, if nothing was sent, or if the request body failed, so that the request was incomplete. Also
 *       with an {@code IOException} if the header is not an ID, two calls would share an ID, an interceptor changes the ID, or a body
 *       cannot be written again.
 * </ul>
 *
 * <p><b>A retry on {@code IOException} around the client</b> makes a new call, with a new ID, even if the outcome is unknown: both
 * exceptions above are {@code IOException}s. Put the retry inside {@link io.idempotence.client.IdempotenceScope#with}. A call in doubt
 * that is made again under a new ID is a warning, once per client and HTTP method.
 *
 * <p><b>Cancelling:</b> {@code Call.cancel()} and an interrupt end the call at once, and no attempt follows. An interrupted thread keeps
 * its flag. If {@code callTimeout} itself ends the call, OkHttp throws its {@code InterruptedIOException} with one of the exceptions
 * above as its cause.
 *
 * <p><b>Redirects:</b> a call with an ID is not redirected to another origin (scheme, host or port). The 3xx is its response, and one
 * warning contains the origin. Within the origin OkHttp follows as usual. 307 and 308 keep request and ID. 301, 302 and 303 lead to a GET
 * without an ID, whose response is the call's, even if it is a login page. While an earlier attempt may have been executed, such a GET is
 * sent only if its redirect was a stored response. Otherwise the outcome stays unknown.
 */
public final class IdempotentOkHttp {
    private IdempotentOkHttp() {}

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the builder of the client
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if a loaded setting is wrong
     * @throws IllegalStateException if {@code install} was called on this builder before
     */
    public static OkHttpClient.Builder install(OkHttpClient.Builder builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. In config, budgets, retries and events, the client's name is the host of the call's URL, with {@code
     * :port} if that is not the scheme's default.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @return {@code builder}
     * @throws IllegalStateException if {@code install} was called on this builder before
     */
    public static OkHttpClient.Builder install(OkHttpClient.Builder builder, IdempotenceClientConfig config) {
        return installAll(builder, Objects.requireNonNull(config, "config"), null);
    }

    /**
     * Installs with given settings and one name for all hosts.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @param name the client's name in config, budgets, retries and events
     * @return {@code builder}
     * @throws IllegalStateException if {@code install} was called on this builder before
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
        CallContexts contexts = new CallContexts(builder.build().eventListenerFactory());
        WireInterceptor wire = new WireInterceptor();
        return builder.eventListenerFactory(contexts)
                .addInterceptor(new IdempotenceInterceptor(new OkHttpOperations(config, name), contexts, wire))
                .addNetworkInterceptor(wire);
    }
}
