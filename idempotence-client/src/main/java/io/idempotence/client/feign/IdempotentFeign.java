package io.idempotence.client.feign;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Feign;
import feign.FeignException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * Gives every logical call of a Feign client one idempotence ID and keeps it on every attempt (promise P1).
 *
 * <pre>{@code
 * Orders orders = IdempotentFeign.install(Feign.builder()).target(Orders.class, "https://orders.example");
 * }</pre>
 *
 * <p><b>Which calls carry an ID:</b> POST and PATCH (see {@link IdempotenceClientConfig#methods()}), methods and interfaces
 * with {@link io.idempotence.Idempotent}, and unsafe calls whose caller gives an {@code Idempotency-Key} header. GET, HEAD,
 * OPTIONS and TRACE never get one.
 *
 * <p><b>Which ID:</b> the caller's header argument, else that of {@link io.idempotence.client.IdempotenceScope}, else one derived
 * from the {@link io.idempotence.InboundRequest} whose handler makes the call, else a new one.
 *
 * <p><b>What is retried:</b> calls with an ID: after requests that certainly were not sent, I/O failures, responses that may have been
 * cut, and the statuses of {@link IdempotenceClientConfig#statuses()} unless the response is a stored one. An execution in progress is
 * polled within the attempt. Feign's own {@code Retryer} is not asked. Attempts, waits and polls end at {@link
 * IdempotenceClientConfig#deadline()}, and so does an exchange in whatever stage it is: {@code docs/deadlines.md} has the table.
 *
 * <p><b>Calls without an ID</b> (GET, {@code @Idempotent(false)}) are as without this project: no retry but those of Feign's {@code
 * Retryer} and of the HTTP client, no deadline, the usual exceptions. Only the listener learns of them.
 *
 * <p><b>How a call ends</b> (promise P7):
 *
 * <ul>
 *   <li>with an answer: the decoded value, or the exception that Feign and the client's {@code ErrorDecoder} make of it. A
 *       {@code Response} return type gets the last answer, error statuses included; responses that are retried are closed. If its body
 *       breaks off while the caller reads it, make the call again under the same ID. Error bodies up to 1 MiB are read
 *       before.
 *   <li>with {@link FeignRequestRefusedException}, if the server half refused; whatever the return type.
 *   <li>with {@link FeignOutcomeUnknownException}, if a call with an ID may have been executed and nothing after settled it. A
 *       status that a login or a gateway may have given before the operation saw the request (401, 403, 404, 413 and the like), or one of
 *       {@link IdempotenceClientConfig#statuses()}, does not settle an earlier attempt unless it is a stored answer.
 *   <li>with the usual Feign exception, if nothing was sent, if the last answer was an error status and no attempt is in
 *       doubt, or if the call carried no ID.
 *   <li>with the exception of an interceptor, encoder or other code of the caller that kept the request from being sent, with
 *       {@link io.idempotence.http.InvalidIdempotencyKeyException} if the caller's header is not an ID, or with {@link
 *       IllegalStateException} if two calls would share an ID, if the server half may have forgotten it
 *       or if the client is put together wrongly; never after a request of this call in doubt. Of
 *       unchecked exceptions of the HTTP client only a {@code RejectedExecutionException} and the refusals of Resilience4j's
 *       circuit breaker, bulkhead and rate limiter count as not sent.
 * </ul>
 *
 * <p><b>Layers between the proxy and its attempts</b>, such as {@code Resilience4jFeign}, may run a call again: all runs have its ID.
 * If such a layer refuses another run of a call that was executed or is in doubt, gives up while a request is out, or replaces the
 * exception of an unknown outcome by one that does not have it as a cause, the call ends with {@link FeignOutcomeUnknownException};
 * what the layer threw is its cause. A retry <em>above</em> the proxy makes another call, with another ID, unless it is inside an {@link
 * io.idempotence.client.IdempotenceScope}. Where that seems to happen after an unknown outcome (the same method, path and body within
 * a minute), a warning is logged, once for a method.
 *
 * <p>A thread interrupted during a call makes no further attempt and keeps its flag.
 *
 * <p><b>Calls that return a future</b> (of {@code AsyncFeign}, whose {@code MethodInfoResolver} decides which do) follow the same rules, without a thread that waits. Every failure
 * is in the future. The first attempt begins in the caller's thread, later ones in {@link IdempotenceClientConfig#executor()}.
 * Cancelling the future, or completing it in another way, cancels the request that is out, and none follows; the listener is
 * told {@code UNKNOWN} then, as the operation may have been executed. A client that returns a future at once and has not ended it
 * 250 ms after the deadline is not waited for any more: the call ends as if the request had timed out, and that future is cancelled.
 *
 * <p><b>Responses that may have been cut:</b> HttpURLConnection, under Feign's default client, takes the beginning of a response for
 * the whole. So the outcome of an attempt is open, and the next one asks, where a status is not 200 to 599, where neither a length
 * nor chunks frame an empty body (204 and 304 need none), where the body of an error is not complete, and where a 409 without the
 * server half's mark follows an attempt in doubt. A body that only the end of its connection ends is taken as it came.
 *
 * <p><b>What cannot be seen:</b> a client that sends again by itself within one {@code execute}, as a load balancer with a retry
 * of its own, or OkHttp when a kept connection breaks or an answer is 408 or says {@code Retry-After: 0}. What became of the
 * first sending is not told here: an error status, or that there was no connection, then looks like all there was, and the end is
 * the usual Feign exception although the operation may have been executed. Over OkHttp, also call {@link io.idempotence.client.okhttp.IdempotentOkHttp#install} on the client
 * below, which leaves ID and attempts to this half and tells it; or at least build that client with {@code
 * retryOnConnectionFailure(false)}. Switch other such retries off; attempts are made here. Feign's default client sends again
 * what has no body: such a failure counts as a doubt, an error status that came the second time cannot be told from one that came
 * at once.
 *
 * <p><b>Redirects</b> of calls with an ID are followed here if the client's options say so, and never to another origin (scheme, host
 * or port): that redirect is the response, and a warning is logged once for a client. Within the origin, 307 and 308 get the same
 * request with its ID; 301, 302 and 303 get what the HTTP client makes of them, a GET without the ID for most. Feign's default client
 * does not follow those of a request whose body it streamed, so they are the response. While an earlier attempt is in doubt, such a GET
 * is sent only if the redirect was a stored one, and the outcome stays unknown otherwise. Nothing is followed for a caller who cancelled,
 * was interrupted or whose deadline is over. Where a load balancer below puts an instance in the place of a service's name, what the
 * instance redirects to itself goes to the service.
 *
 * <p><b>Putting it together:</b> call {@code install} once, after {@code requestInterceptors(...)} (which drops interceptors
 * that are there) and after other capabilities that bring an invocation handler, such as {@code Resilience4jFeign.capability}.
 * Interceptors added before see no ID; those added after see it and must not change it. {@code ReactorFeign}, {@code
 * RxJavaFeign} and {@code HystrixFeign} are not supported, nor are {@code suspend} functions of Kotlin: building a client with one is an
 * {@link IllegalArgumentException}.
 */
public final class IdempotentFeign {
    private IdempotentFeign() {}

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the client to be
     * @param <B> its type
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if a loaded setting is wrong
     * @throws IllegalStateException if it is installed already
     */
    public static <B extends Feign.Builder> B install(B builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. Clients that share a config share the retry budgets of equal targets.
     *
     * @param builder the client to be
     * @param config the settings
     * @param <B> its type
     * @return {@code builder}
     * @throws IllegalArgumentException if {@code builder} is of a reactive Feign or HystrixFeign, which drop what is installed
     * @throws IllegalStateException if it is installed already
     */
    public static <B extends Feign.Builder> B install(B builder, IdempotenceClientConfig config) {
        for (Class<?> type = builder.getClass();
                type != Feign.Builder.class && type != null;
                type = type.getSuperclass()) {
            if (type.getName().startsWith("feign.reactive.") || type.getName().startsWith("feign.hystrix.")) {
                throw new IllegalArgumentException(type.getName()
                        + " sets its own invocation handler, so its calls would be unprotected; use Feign.builder()");
            }
        }
        install(builder, new Installation(Objects.requireNonNull(config, "config"), builder));
        return builder;
    }

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the client to be
     * @param <C> the context of its requests
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if a loaded setting is wrong
     * @throws IllegalStateException if it is installed already
     */
    public static <C> AsyncFeign.AsyncBuilder<C> install(AsyncFeign.AsyncBuilder<C> builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. Clients that share a config share the retry budgets of equal targets.
     *
     * @param builder the client to be
     * @param config the settings
     * @param <C> the context of its requests
     * @return {@code builder}
     * @throws IllegalStateException if it is installed already
     */
    public static <C> AsyncFeign.AsyncBuilder<C> install(
            AsyncFeign.AsyncBuilder<C> builder, IdempotenceClientConfig config) {
        Objects.requireNonNull(builder, "builder");
        install(builder, new Installation(Objects.requireNonNull(config, "config"), builder));
        return builder;
    }

    /**
     * The ID of the call that ended with an exception of Feign: an answer that could not be decoded, an error status, a failure
     * to send. Making the call again under it ({@link io.idempotence.client.IdempotenceScope#resume}) asks for the same answer,
     * or executes what was not.
     *
     * @param ended what a client threw on which this was installed
     * @return empty if the last request carried no ID, as the GET after a redirect, or none of this form, or if the exception
     *     does not tell. An exception of another client that has this installed gives the ID of that one's call
     */
    public static Optional<IdempotenceId> idOf(FeignException ended) {
        List<String> lines =
                ended.hasRequest() ? KeyHeader.lines(ended.request().headers()) : List.of();
        try {
            return lines.isEmpty() ? Optional.empty() : Optional.of(KeyHeader.parse(lines));
        } catch (InvalidIdempotencyKeyException e) {
            return Optional.empty();
        }
    }

    private static void install(BaseBuilder<?, ?> builder, Installation installation) {
        builder.requestInterceptor(new IdempotenceRequestInterceptor(installation));
        builder.addCapability(new IdempotenceCapability(installation));
    }
}
