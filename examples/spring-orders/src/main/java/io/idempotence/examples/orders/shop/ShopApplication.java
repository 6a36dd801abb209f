package io.idempotence.examples.orders.shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/** The shop. Its Feign client is an ordinary one; retries are tuned in shop.yml. */
@SpringBootApplication
@EnableFeignClients
public class ShopApplication {
    /**
     * Starts the shop alone.
     *
     * @param args Spring's
     */
    public static void main(String[] args) {
        System.setProperty("spring.config.name", "shop");
        SpringApplication.run(ShopApplication.class, args);
    }

    /** Everybody may buy. Forms carry Spring Security's CSRF token beside the idempotence token. */
    @Bean
    SecurityFilterChain security(HttpSecurity http) throws Exception {
        return http.authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                .build();
    }
}
