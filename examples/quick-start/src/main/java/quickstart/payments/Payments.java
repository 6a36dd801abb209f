package quickstart.payments;

import io.idempotence.Idempotent;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication @RestController
class Payments {
    private final AtomicInteger made = new AtomicInteger();
    @PostMapping("/payments") @Idempotent
    String pay(@RequestBody String order) { return "payment " + made.incrementAndGet() + " for " + order; }
    public static void main(String[] args) { SpringApplication.run(Payments.class, args); }
}
