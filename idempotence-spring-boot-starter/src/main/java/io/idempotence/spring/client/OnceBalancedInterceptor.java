package io.idempotence.spring.client;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.cloud.client.loadbalancer.DeferringLoadBalancerInterceptor;
import org.springframework.cloud.client.loadbalancer.LoadBalancerClient;
import org.springframework.cloud.client.loadbalancer.LoadBalancerInterceptor;
import org.springframework.cloud.client.loadbalancer.LoadBalancerRequestFactory;
import org.springframework.cloud.client.loadbalancer.RetryLoadBalancerInterceptor;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.util.ClassUtils;

/**
 * The load balancer's interceptor without its own retry, for requests with an ID. Its retries would be part of one attempt of the client
 * half, and the two numbers of attempts would multiply. Each attempt asks the load balancer for an instance.
 */
final class OnceBalancedInterceptor {
    private static final boolean MAY_BE_BALANCED = ClassUtils.isPresent(
            "org.springframework.cloud.client.loadbalancer.DeferringLoadBalancerInterceptor",
            OnceBalancedInterceptor.class.getClassLoader());

    private OnceBalancedInterceptor() {}

    /** Replaces a load balancer's interceptor that retries. Returns any other one unchanged. */
    static ClientHttpRequestInterceptor of(ClientHttpRequestInterceptor interceptor) {
        return MAY_BE_BALANCED ? Balanced.once(interceptor) : interceptor;
    }

    /** Loaded only if Spring Cloud is present. */
    private static final class Balanced {
        static ClientHttpRequestInterceptor once(ClientHttpRequestInterceptor interceptor) {
            Object balancer = interceptor instanceof DeferringLoadBalancerInterceptor
                    ? ((ObjectProvider<?>) SpringInternals.required(interceptor, "loadBalancerInterceptorProvider"))
                            .getIfAvailable()
                    : interceptor;
            return balancer instanceof RetryLoadBalancerInterceptor
                    ? new LoadBalancerInterceptor(
                            (LoadBalancerClient) SpringInternals.required(balancer, "loadBalancer"),
                            (LoadBalancerRequestFactory) SpringInternals.required(balancer, "requestFactory"))
                    : interceptor;
        }
    }
}
