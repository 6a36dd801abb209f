package io.idempotence.it.redeploy;

import feign.AsyncFeign;
import feign.Feign;
import feign.RequestLine;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Calls of the web application over Feign. Nobody closes a Feign client, so there is nothing to close. */
final class FeignCalls implements WebApplication.Calls {
    interface Orders {
        @RequestLine("POST /orders")
        String create(String body);
    }

    interface AsyncOrders {
        @RequestLine("POST /orders")
        CompletableFuture<String> create(String body);
    }

    private final Orders orders;
    private final AsyncOrders asyncOrders;

    FeignCalls(String url) {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(1))
                .deadline(Duration.ofMinutes(2))
                .build();
        Feign.Builder builder = Feign.builder();
        IdempotentFeign.install(builder, config);
        orders = builder.target(Orders.class, url);
        AsyncFeign.AsyncBuilder<Object> asyncBuilder = AsyncFeign.builder();
        IdempotentFeign.install(asyncBuilder, config);
        asyncOrders = asyncBuilder.target(AsyncOrders.class, url);
    }

    @Override
    public String make() throws Exception {
        return orders.create("{}") + "," + asyncOrders.create("{}").get(60, TimeUnit.SECONDS);
    }

    @Override
    public void close() {}
}
