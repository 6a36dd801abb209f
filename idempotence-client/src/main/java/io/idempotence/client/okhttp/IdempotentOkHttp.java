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
 * They do not see the {@code Location} of a redirect that is not followed. Do not wrap the dispatcher's executor so that it carries
 * scopes: a thread that ends one call starts the next one. Scope and inbound request are those of the thread that executes the call, else
 * those of the thread that created it with {@code newCall}.
 *
 * <p><b>How a call with an ID ends</b> (promise P7), from {@code execute()} or in the callback of {@code enqueue}:
 *
 * <ul>
 *   <li>With a response, error statuses included, as OkHttp does. If a later attempt shows nothing about the operation, the response is
 *       that of the earlier one, without its body. The body may still be cut while it is read: then make the call again under the same ID.
 *   <li>With {@link OkHttpRequestRefusedException}, if the server half refused.
 *   <li>With {@link OkHttpOutcomeUnknownException}, if the call may have been executed and no later response settled it. A retry on {@code
 *       IOException} around the client makes a new call, with a new ID, unless it is inside {@link
 *       io.idempotence.client.IdempotenceScope#with}.
 *   <li>With the usual {@code IOException}, if no attempt was sent. Also if the request body failed or the call was cancelled between two
 *       attempts, unless it was in doubt. And if the header is not an ID, two calls would share an ID, an interceptor changes the ID, or a
 *       body cannot be written again.
 * </ul>
 *
 * <p>A call without an ID behaves as if nothing were installed. The pages {@code docs/okhttp.md}, {@code docs/outcomes.md} and {@code
 * docs/deadlines.md} have the rest: request bodies, redirects, what settles a doubt, and when a call ends at the latest.
 */
public final class IdempotentOkHttp {
    private IdempotentOkHttp() {}

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the builder of the client
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceClientConfigException if a loaded setting is wrong
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
                .addInterceptor(new IdempotenceInterceptor(config, name, contexts, wire))
                .addNetworkInterceptor(wire);
    }
}
