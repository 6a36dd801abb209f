package quickstart.shop;

import io.idempotence.client.feign.FeignOutcomeUnknownException;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

@FeignClient(name = "payments", url = "${payments.url}")
interface PaymentClient {
    @PostMapping("/payments")
    String pay(@RequestBody String order);
}

@SpringBootApplication @EnableFeignClients @RestController
class Shop {
    @Autowired PaymentClient payments;

    @PostMapping("/orders")
    String order(@RequestBody String order) {
        try {
            return payments.pay(order); // retried when needed, always under one ID
        } catch (FeignOutcomeUnknownException e) { // perhaps paid: ask again later under the same ID
            return "pending: " + e.id();
        }
    }
}

/** What an IDE or start.spring.io adds. */
final class ShopMain {
    private ShopMain() {}

    public static void main(String[] args) {
        SpringApplication.run(Shop.class, args);
    }
}
