package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfig;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/**
 * The client half for {@code RestClient}, HTTP service clients and {@code RestTemplate}. It gives every logical call one idempotence ID and
 * keeps it on every attempt (promise P1).
 *
 * <p><b>Set-up:</b> none for clients that are built with Boot's {@code RestClient.Builder} or {@code RestTemplateBuilder}, for beans of
 * {@code RestClient.Builder} and {@code RestTemplate}, and for HTTP service clients over them. Others call {@code install}, once.
 *
 * <p><b>Plain clients</b> may call third parties that ignore the ID, so without {@code install} a call carries one only if it is asked for:
 * it is a method of an HTTP service client that is a bean, or it has an {@code Idempotency-Key} header, an {@link
 * io.idempotence.client.IdempotenceScope} or the attribute {@link #IDEMPOTENT}, or its host has settings of its own, such as {@code
 * idempotence.client.clients.<host>.enabled=true}, or {@code idempotence.client.rest-clients=all}. Any other call behaves as if nothing were
 * installed, but its request body is held in memory, as Spring does for each client with an interceptor. With {@code
 * idempotence.client.rest-clients=none} the starter leaves these clients alone.
 *
 * <p><b>Interceptors:</b> this one is first. Interceptors behind it, such as those of a load balancer, of authentication or of a log, see
 * each attempt with its ID, which they must not change. Interceptors in front of it see the call once.
 *
 * <p><b>Which of these carry an ID:</b> POST and PATCH (see {@link IdempotenceClientConfig#methods()}, which can add PUT and DELETE), other
 * unsafe calls whose caller sets an {@code Idempotency-Key} header, and calls with the attribute {@link #IDEMPOTENT}. A call without an ID
 * behaves as if nothing were installed.
 *
 * <p><b>Which ID:</b> the caller's header, else that of {@link io.idempotence.client.IdempotenceScope}, else one derived from the {@link
 * io.idempotence.InboundRequest} whose handler makes the call, else a new one. Within a scope, the same call is the same HTTP method and
 * the same URL without its query.
 *
 * <p><b>How a call ends</b> (promise P7):
 *
 * <ul>
 *   <li>With a response, error statuses included, which the client's status handlers see. Responses up to 1 MiB are read before they are
 *       returned, so that a cut one is asked for again. Of a longer one, and of one that is a stream of events or lines, the caller reads
 *       the rest. If reading a success fails, the call was executed, whatever exception Spring makes of it.
 *   <li>With {@link RestRequestRefusedException}, if the server half refused.
 *   <li>With {@link RestOutcomeUnknownException}, if the call may have been executed and no later response settled it.
 *   <li>With {@link org.springframework.web.client.ResourceAccessException}, if nothing was sent.
 * </ul>
 *
 * <p><b>Deadline:</b> over the request factories of the JDK's client, {@code HttpURLConnection} and Apache HttpClient, an attempt ends at
 * {@link IdempotenceClientConfig#deadline()}. Over others it ends with their own timeouts, and none follows.
 *
 * <p><b>Redirects</b> of calls with an ID are followed if the JDK's client or Apache HttpClient would, but never to another origin: that
 * redirect is the response. 307 and 308 repeat the request with its ID. 301, 302 and 303 are followed by a GET without it. {@code
 * HttpURLConnection} follows none. Any other HTTP client follows redirects by itself, perhaps to another origin and with the ID. So does a
 * {@code java.net.http.HttpClient} that is not of the JDK's own class, but for example wraps one to measure it.
 */
public final class IdempotentRestClient {
    /**
     * The name of a request attribute with the client's name, a {@code String}. If absent, the name is the HTTP service group (Spring 7), or
     * else the URL's host, with a port if it has one.
     */
    public static final String CLIENT = "io.idempotence.client";

    /**
     * The name of a request attribute with the method's name in settings, a {@code String}. If absent, it is the method of an HTTP service
     * client that is a bean, or else the HTTP method.
     */
    public static final String METHOD = "io.idempotence.method";

    /**
     * The name of a request attribute, a {@code Boolean}, that has the meaning of {@link io.idempotence.Idempotent}. The annotation itself
     * works on methods of HTTP service clients that are beans.
     */
    public static final String IDEMPOTENT = "io.idempotence.idempotent";

    private IdempotentRestClient() {}

    /**
     * Installs with given settings, for all calls of the client. Installing again has no effect.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @return {@code builder}
     */
    public static RestClient.Builder install(RestClient.Builder builder, IdempotenceClientConfig config) {
        return builder.requestInterceptors(interceptors -> new RestInterceptor(config, true).addTo(interceptors));
    }

    /**
     * Installs with given settings, for all calls of the client. Installing again has no effect.
     *
     * @param template the client
     * @param config the settings
     * @return {@code template}
     */
    public static RestTemplate install(RestTemplate template, IdempotenceClientConfig config) {
        new RestInterceptor(config, true).addTo(template.getInterceptors());
        return template;
    }
}
