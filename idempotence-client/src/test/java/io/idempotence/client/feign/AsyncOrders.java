package io.idempotence.client.feign;

import feign.RequestLine;
import feign.Response;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** The calls of {@link Orders}, with futures as their results. */
interface AsyncOrders {
    @RequestLine("POST /orders")
    CompletableFuture<String> create(String body);

    @RequestLine("POST /tick")
    CompletionStage<String> tick();

    @RequestLine("POST /raw")
    CompletableFuture<Response> raw(String body);

    @RequestLine("POST /now")
    String now(String body);

    @RequestLine("GET /orders")
    CompletableFuture<String> list();

    default CompletableFuture<String> twice() {
        return create("a").thenCompose(first -> create("b").thenApply(second -> first + second));
    }
}
