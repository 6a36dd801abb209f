package io.idempotence.benchmarks;

import feign.Headers;
import feign.Param;
import feign.RequestLine;

/** The same call as people write it without an ID, and with one that they make themselves. */
@Headers("Content-Type: application/json")
public interface Payments {
    /**
     * Pays.
     *
     * @param order as JSON
     * @return what the service says
     */
    @RequestLine("POST /payments")
    String pay(String order);

    /**
     * Pays, once per ID if the service sees to it.
     *
     * @param id the ID
     * @param order as JSON
     * @return what the service says
     */
    @RequestLine("POST /payments")
    @Headers("Idempotency-Key: {id}")
    String pay(@Param("id") String id, String order);
}
