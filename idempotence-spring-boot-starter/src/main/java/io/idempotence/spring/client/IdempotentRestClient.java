package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfig;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/**
 * The client half for {@code RestClient}, HTTP service clients and {@code RestTemplate}. It gives every logical call one idempotence ID and
 * keeps it on every attempt (promise P1).
 *
 * <p><b>Set-up:</b> none for clients that are built with Boot's {@code RestClient.Builder} or {@code RestTemplateBuilder}, for beans of
 * {@code RestClient.Builder} and {@code RestTemplate}, and for HTTP service clients over them. For any other client, call {@code install}
 * once. Without {@code install}, a plain call carries an ID only if the application asks for it. The interceptor of the client half is
 * first. Interceptors behind it see each attempt with its ID, which they must not change. Interceptors in front of it see the call once. An
 * interceptor that sends a request again belongs behind it: on Spring 6, the requests that it sends after the first one are not retried,
 * and their end hides an unknown outcome of the first one.
 *
 * <p><b>How a call with an ID ends</b> (promise P7):
 *
 * <ul>
 *   <li>With a response, error statuses included, which the client's status handlers see. If a later attempt shows nothing about the
 *       operation, the response is that of the earlier one, without its body. If a 2xx response cannot be read, the call was executed,
 *       whatever exception Spring throws.
 *   <li>With {@link RestRequestRefusedException}, if the server half refused.
 *   <li>With {@link RestOutcomeUnknownException}, if the call may have been executed and no later response settled it.
 *   <li>With {@link org.springframework.web.client.ResourceAccessException}, if no attempt was sent.
 *   <li>With {@link io.idempotence.http.InvalidIdempotencyKeyException} if the caller's header is not an ID, or with {@link
 *       IllegalStateException} if two calls would share an ID, if the server half may have forgotten the ID, or if an interceptor changed
 *       it.
 * </ul>
 *
 * <p>A call without an ID behaves as if nothing were installed, but its request body is held in memory, as Spring does for each client with
 * an interceptor. The pages {@code docs/spring-client.md} and {@code docs/outcomes.md} have the rest: which calls carry an ID, request
 * factories, redirects, and what settles a doubt.
 */
public final class IdempotentRestClient {
    /**
     * The name of a request attribute with the client's name, a {@code String}. If absent, the name is the HTTP service group (Spring 7), or
     * else the URL's host, with a port if it has one.
     */
    public static final String CLIENT = CallAttributes.CLIENT;

    /**
     * The name of a request attribute with the method's name in settings, a {@code String}. If absent, it is the method of an HTTP service
     * client that is a bean, or else the HTTP method.
     */
    public static final String METHOD = CallAttributes.METHOD;

    /**
     * The name of a request attribute, a {@code Boolean}, that has the meaning of {@link io.idempotence.Idempotent}. The annotation itself
     * works on methods of HTTP service clients that are beans.
     */
    public static final String IDEMPOTENT = CallAttributes.IDEMPOTENT;

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
