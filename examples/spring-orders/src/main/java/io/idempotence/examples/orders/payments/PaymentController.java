package io.idempotence.examples.orders.payments;

import io.idempotence.Idempotent;
import io.idempotence.examples.orders.network.FaultyNetwork;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** The API of the payment service. */
@RestController
class PaymentController {
    private final Ledger ledger;

    PaymentController(Ledger ledger) {
        this.ledger = ledger;
    }

    @PostMapping("/payments")
    @ResponseStatus(HttpStatus.CREATED)
    @Idempotent
    Payment pay(
            @RequestBody PaymentRequest request,
            @RequestHeader(name = FaultyNetwork.FAIL_AFTER_COMMIT, required = false) String fault) {
        Payment payment = ledger.pay(request);
        if (fault != null) {
            throw new IllegalStateException("the example asked for a failure after the commit");
        }
        return payment;
    }

    @GetMapping("/payments")
    List<Payment> of(@RequestParam long order) {
        return ledger.of(order);
    }
}
