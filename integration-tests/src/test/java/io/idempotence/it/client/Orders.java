package io.idempotence.it.client;

import feign.Headers;
import feign.Param;
import feign.RequestLine;
import feign.Response;
import io.idempotence.Idempotent;
import java.util.Map;

/** The client interface of these tests. */
interface Orders {
    @RequestLine("POST /orders")
    String create(String body);

    @RequestLine("PATCH /orders/1")
    String change(String body);

    @RequestLine("POST /orders")
    @Headers("Idempotency-Key: {id}")
    String createAs(@Param("id") String id, String body);

    @RequestLine("POST /tick")
    String tick();

    @RequestLine("POST /orders")
    Response raw(String body);

    @RequestLine("POST /orders")
    @Headers({"Idempotent-Replayed: true", "Idempotency-Refusal: outcome-unknown", "Retry-After: 3600"})
    String createWithHeadersOfAResponse(String body);

    @RequestLine("PUT /orders/1")
    String put(String body);

    @Idempotent
    @RequestLine("PUT /orders/1")
    String protectedPut(String body);

    @RequestLine("DELETE /orders/1")
    String delete();

    @Idempotent
    @RequestLine("DELETE /orders/1")
    String protectedDelete();

    @Idempotent(false)
    @RequestLine("POST /orders")
    String unprotected(String body);

    @Idempotent(false)
    @RequestLine("POST /orders")
    @Headers("Idempotency-Key: {id}")
    String unprotectedAs(@Param("id") String id, String body);

    @Idempotent
    @RequestLine("GET /orders")
    String list();

    @Idempotent
    @RequestLine("GET /orders")
    @Headers("Idempotency-Key: {id}")
    String listAs(@Param("id") String id);

    @RequestLine("POST /numbers")
    Map<String, Integer> number(String body);

    default String twice() {
        return create("a") + create("b");
    }
}
