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
 * those the header is taken off.
 *
 * <p><b>Which ID:</b> the caller's header, else {@link io.idempotence.client.IdempotenceScope}, else derived from the {@link
 * io.idempotence.InboundRequest} whose handler makes the call, else a new one. Scope and request are
 * those of the thread that executes the call, else those of the thread that made it with {@code newCall}, so {@code enqueue}
 * inside a scope carries its ID. Within a scope, the same call is the same HTTP method and the same URL without its query.
 *
 * <p><b>What is tried again:</b> as with Feign: requests that certainly were not sent; with an ID, or where the HTTP method is
 * safe, also I/O failures after connecting and the statuses of {@link IdempotenceClientConfig#statuses()} unless the answer is
 * a stored one. An execution in progress is polled within the attempt. Attempts, waits and polls end at {@link
 * IdempotenceClientConfig#deadline()}, or shortly before the client's {@code callTimeout} if that is shorter; timeouts of an
 * attempt, and with them those of its answer's body, are cut to what is left. Use a client without idempotence for streams that
 * pause for longer. What OkHttp sends again by itself carries the same ID and is part of the attempt.
 *
 * <p><b>Bodies</b> of calls with an ID are written once and repeated byte by byte, up to 1 MiB; longer ones are written by
 * their {@code RequestBody} for each attempt and must come out equal. A body that {@code isOneShot()} or {@code isDuplex()}
 * cannot be sent again: once its writing began there is no further attempt.
 *
 * <p><b>How a call ends</b> (promise P7), from {@code execute()} or in the callback of {@code enqueue}:
 *
 * <ul>
 *   <li>with an answer, error statuses included, as OkHttp does; answers tried again are closed. That its body can be read to
 *       the end is not known yet: if it breaks off, make the call again under the same ID.
 *   <li>with {@link RequestRefusedException}, if the server half refused.
 *   <li>with {@link OutcomeUnknownException}, if a call with an ID may have been carried out and nothing after settled it. A
 *       status that a login or a gateway may have given before the operation saw the request (401, 403, 404, 413 and the like), or one of
 *       {@link IdempotenceClientConfig#statuses()}, does not settle an earlier attempt unless it is a stored answer.
 *   <li>with the usual {@code IOException}, if nothing was sent, or if the call carried no ID. A header that is no ID, an ID
 *       that two calls would share, an interceptor that changes the ID, and settings for the URL's host that do not fit each other
 *       are {@code IOException}s, too.
 * </ul>
 *
 * <p>{@code Call.cancel()} and an interrupt end the call at once; there is no further attempt, and an interrupted thread keeps its
 * flag. If {@code callTimeout} itself ends the call, OkHttp throws its {@code InterruptedIOException}, whose cause is one of
 * the above.
 *
 * <p><b>Redirects:</b> the ID stays on redirects within an origin (scheme, host and port). To another origin, and on a GET that
 * a POST was redirected to, it is taken off; another origin does not know it, so a call that was sent there without it is not
 * tried again, nor sent again by OkHttp itself. While an earlier attempt may have been carried out, a redirect that takes it off
 * is not followed, and the outcome stays unknown; but for the GET after a redirect that the server half had stored. The GET's
 * answer is the call's, also if it is a login page.
 *
 * <p><b>Web sockets</b> pass untouched: opening one is no call here, and is not tried again.
 *
 * <p><b>Putting it together:</b> call {@code install} once, after {@code eventListener} or {@code eventListenerFactory}, which
 * it wraps. Interceptors added before see the call once and no ID; those added after see each attempt with its ID and must
 * not change it. A Feign client with {@link io.idempotence.client.feign.IdempotentFeign} over this client keeps its own ID and
 * retries, unless an {@code AsyncClient} or {@code Client} that is not Feign's own hands the request to another thread: then
 * install one of the two only. What is called on the way, such as a token that an authenticator fetches, is a call of its own. Do
 * not wrap the dispatcher's executor so that it hands scopes on: a thread that ends one call starts the next one.
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
