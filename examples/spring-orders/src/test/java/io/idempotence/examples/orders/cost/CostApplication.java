package io.idempotence.examples.orders.cost;

import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application with one handler that nobody protects. With {@code cost.uses-redis} it asks its Redis something while it starts. */
@SpringBootApplication
@RestController
public class CostApplication {
    public static void main(String[] args) {
        SpringApplication.run(CostApplication.class, args);
    }

    @Bean
    @ConditionalOnProperty("cost.uses-redis")
    SmartInitializingSingleton question(StringRedisTemplate redis) {
        return () -> redis.hasKey("any");
    }

    @PostMapping("/free")
    String free() {
        return "ok";
    }
}
