package io.idempotence.examples.orders.shop;

import java.util.List;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;

/** The payment service, as the shop sees it. An ordinary Feign client. */
@FeignClient(name = "payments", url = "${payments.url}")
interface PaymentsClient {
    @PostMapping("/payments")
    Payment pay(@RequestBody PaymentRequest request);

    @GetMapping("/payments")
    List<Payment> of(@RequestParam("order") long order);

    /** A payment to make. */
    record PaymentRequest(long order, int cents) {}

    /** A payment that was made. */
    record Payment(long number, long order, int cents) {}
}
