package io.idempotence.examples.orders.cost;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application with one handler that nobody protects. */
@SpringBootApplication
@RestController
public class CostApplication {
    public static void main(String[] args) {
        SpringApplication.run(CostApplication.class, args);
    }

    @PostMapping("/free")
    String free() {
        return "ok";
    }
}
