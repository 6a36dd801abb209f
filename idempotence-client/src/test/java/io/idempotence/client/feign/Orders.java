package io.idempotence.client.feign;

import feign.Headers;
import feign.Param;
import feign.RequestLine;
import feign.Response;
import io.idempotence.Idempotent;

/** The client interface of these tests. */
interface Orders {
    @RequestLine("POST /orders")
    String create(String body);

    @RequestLine("POST /keyed")
    @Headers("idempotency-key: {key}")
    String createAs(@Param("key") String key);

    @RequestLine("POST /tick")
    String tick();

    @RequestLine("POST /raw")
    Response raw(String body);

    @RequestLine("PATCH /orders")
    String patch(String body);

    @RequestLine("PUT /orders")
    String put(String body);

    @Idempotent
    @RequestLine("PUT /protected")
    String protectedPut(String body);

    @Idempotent(false)
    @RequestLine("POST /unprotected")
    String unprotected(String body);

    @RequestLine("GET /orders")
    String list();

    default String twice() {
        return create("a") + create("b");
    }
}
