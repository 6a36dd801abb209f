package io.idempotence.spring.client;

import feign.Client;
import feign.Request;
import feign.Response;
import io.idempotence.http.IdempotenceHeaders;
import java.io.IOException;
import java.util.List;
import org.springframework.cloud.client.loadbalancer.LoadBalancerClient;
import org.springframework.cloud.loadbalancer.support.LoadBalancerClientFactory;
import org.springframework.cloud.openfeign.loadbalancer.FeignBlockingLoadBalancerClient;
import org.springframework.cloud.openfeign.loadbalancer.LoadBalancerFeignRequestTransformer;
import org.springframework.cloud.openfeign.loadbalancer.RetryableFeignBlockingLoadBalancerClient;

/**
 * A load-balanced client whose own retry does not apply to requests with an ID: the client half retries those, and has to see each of them.
 * Each attempt asks the load balancer for an instance. Other requests are retried by the load balancer as before.
 */
final class OnceBalancedClient implements Client {
    /** The only client among the fields, so that it counts as the one that sends. */
    private final FeignBlockingLoadBalancerClient once;

    private final Sender retrying;

    /** A client that is not a field of that type. */
    private interface Sender {
        Response send(Request request, Request.Options options) throws IOException;
    }

    @SuppressWarnings("unchecked") // the field's type
    private OnceBalancedClient(RetryableFeignBlockingLoadBalancerClient retrying) {
        this.retrying = retrying::execute;
        this.once = new FeignBlockingLoadBalancerClient(
                retrying.getDelegate(),
                (LoadBalancerClient) SpringInternals.required(retrying, "loadBalancerClient"),
                (LoadBalancerClientFactory) SpringInternals.required(retrying, "loadBalancerClientFactory"),
                (List<LoadBalancerFeignRequestTransformer>) SpringInternals.required(retrying, "transformers"));
    }

    /** Wraps a load balancer's client that retries. Returns any other client unchanged. */
    static Client of(Client client) {
        return client instanceof RetryableFeignBlockingLoadBalancerClient retrying
                ? new OnceBalancedClient(retrying)
                : client;
    }

    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        boolean withId =
                request.headers().keySet().stream().anyMatch(IdempotenceHeaders.IDEMPOTENCY_KEY::equalsIgnoreCase);
        return withId ? once.execute(request, options) : retrying.send(request, options);
    }
}
