package io.idempotence.it.pair;

import feign.Headers;
import feign.Param;
import feign.RequestLine;

/** The client interface of these tests. */
@Headers("Content-Type: text/plain")
interface Payments {
    @RequestLine("POST /payments")
    String pay(String order);

    @RequestLine("POST /payments")
    @Headers("Idempotency-Key: {id}")
    String payAs(@Param("id") String id, String order);

    /** For {@code ProviderProcess}, which then stops after it has paid. */
    @RequestLine("POST /payments")
    @Headers("X-Hold: {when}")
    String payAndHold(@Param("when") String when, String order);
}
