package io.idempotence.examples.orders.cost;

import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * An application whose handlers nobody protects. One of them uses the application's own Redis. With {@code cost.uses-redis} it also uses it
 * while it starts.
 */
@SpringBootApplication
@RestController
public class CostApplication {
    private final StringRedisTemplate redis;

    CostApplication(StringRedisTemplate redis) {
        this.redis = redis;
    }

    public static void main(String[] args) {
        SpringApplication.run(CostApplication.class, args);
    }

    @Bean
    @ConditionalOnProperty("cost.uses-redis")
    SmartInitializingSingleton question() {
        return () -> redis.hasKey("any");
    }

    @PostMapping("/free")
    String free() {
        return "ok";
    }

    @PostMapping("/redis")
    String useRedis() {
        redis.hasKey("any");
        return "ok";
    }
}
