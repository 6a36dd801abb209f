package io.idempotence.spring.client;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.net.URI;
import java.util.List;
import java.util.function.BiPredicate;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpRequest;
import org.springframework.http.StreamingHttpOutputMessage;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.InterceptingClientHttpRequestFactory;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.util.ClassUtils;

/**
 * The chain behind an interceptor: the other interceptors and the request factory. It can be run for each attempt. The execution of
 * Spring 6 cannot: a second run of it leaves out the interceptors that the first one reached.
 */
final class RequestChain {
    private static final String REQUEST = "org.springframework.http.client.InterceptingClientHttpRequest";

    private static final @Nullable Constructor<InterceptingClientHttpRequestFactory> OF_SPRING_7 =
            ClassUtils.getConstructorIfAvailable(
                    InterceptingClientHttpRequestFactory.class,
                    ClientHttpRequestFactory.class,
                    List.class,
                    BiPredicate.class);

    private final HttpRequest original;
    private final boolean first;
    private final List<ClientHttpRequestInterceptor> behind;
    private final ClientHttpRequestFactory factory;
    private final @Nullable BiPredicate<URI, HttpMethod> buffers;

    private RequestChain(
            HttpRequest original,
            boolean first,
            List<ClientHttpRequestInterceptor> behind,
            ClientHttpRequestFactory factory,
            @Nullable BiPredicate<URI, HttpMethod> buffers) {
        this.original = original;
        this.first = first;
        this.behind = behind;
        this.factory = factory;
        this.buffers = buffers;
    }

    /** @throws IllegalStateException if this is not a version of Spring that is known */
    @SuppressWarnings("unchecked") // the types of the fields
    static RequestChain of(
            ClientHttpRequestInterceptor own, HttpRequest request, ClientHttpRequestExecution execution) {
        HttpRequest unwrapped = request;
        while (unwrapped instanceof HttpRequestWrapper wrapper) {
            unwrapped = wrapper.getRequest();
        }
        // An interceptor in front may have replaced the request. On Spring 6, the execution still refers to the
        // original one.
        Object root = isIntercepting(unwrapped) ? unwrapped : SpringInternals.field(execution, "this$0");
        if (root == null || !isIntercepting(root)) {
            throw new IllegalStateException(
                    "an interceptor in front of the one of IdempotentRestClient replaced the request by a "
                            + request.getClass().getName()
                            + ", which hides the rest of the chain; extend HttpRequestWrapper,"
                            + " or put that interceptor behind");
        }
        List<ClientHttpRequestInterceptor> all =
                (List<ClientHttpRequestInterceptor>) SpringInternals.required(root, "interceptors");
        int index = indexOf(own, all);
        return new RequestChain(
                (HttpRequest) root,
                index == 0,
                all.subList(index + 1, all.size()).stream()
                        .map(OnceBalancedInterceptor::of)
                        .toList(),
                (ClientHttpRequestFactory) SpringInternals.required(root, "requestFactory"),
                (BiPredicate<URI, HttpMethod>) SpringInternals.field(root, "bufferingPredicate"));
    }

    private static int indexOf(ClientHttpRequestInterceptor own, List<ClientHttpRequestInterceptor> all) {
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i) == own) {
                return i;
            }
        }
        throw new IllegalStateException(
                "another interceptor calls the one of IdempotentRestClient, which must be in the client's own list"
                        + " of interceptors; call IdempotentRestClient.install on the builder");
    }

    private static boolean isIntercepting(Object request) {
        return request.getClass().getName().equals(REQUEST);
    }

    /** The request as the client made it. Interceptors in front can change it, and when they run the chain again, they begin with it again. */
    HttpRequest original() {
        return original;
    }

    /** Whether an interceptor in front that runs its chain again leaves this one out. */
    boolean isLeftOutByFurtherRuns() {
        return !first && OF_SPRING_7 == null;
    }

    /** The factory at the end of the chain. */
    ClientHttpRequestFactory factory() {
        return factory;
    }

    /**
     * Runs the chain.
     *
     * @param end replaces the factory at its end
     */
    ClientHttpResponse execute(HttpRequest request, byte[] body, ClientHttpRequestFactory end) throws IOException {
        ClientHttpRequest next = intercepting(end).createRequest(request.getURI(), request.getMethod());
        request.getHeaders().forEach((name, values) -> next.getHeaders().addAll(name, values));
        // An interceptor in front may send in two threads, and each records its call in the original request.
        synchronized (original) {
            next.getAttributes().putAll(request.getAttributes());
        }
        write(body, next);
        return next.execute();
    }

    /** Gives a request its body, without a copy if its client can write it more than once. */
    static void write(byte[] body, ClientHttpRequest request) throws IOException {
        if (body.length == 0) {
            return;
        }
        if (request instanceof StreamingHttpOutputMessage streaming) {
            streaming.setBody(new StreamingHttpOutputMessage.Body() {
                @Override
                public void writeTo(OutputStream out) throws IOException {
                    out.write(body);
                }

                @Override
                public boolean repeatable() {
                    return true;
                }
            });
        } else {
            request.getBody().write(body);
        }
    }

    private ClientHttpRequestFactory intercepting(ClientHttpRequestFactory end) {
        return OF_SPRING_7 == null
                ? new InterceptingClientHttpRequestFactory(end, behind)
                : BeanUtils.instantiateClass(OF_SPRING_7, end, behind, buffers);
    }
}
