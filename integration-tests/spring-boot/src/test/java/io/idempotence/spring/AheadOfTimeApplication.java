package io.idempotence.spring;

import io.idempotence.Idempotent;
import java.util.UUID;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The application of {@link AheadOfTimeTest}. Spring Boot takes no nested class for that. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import({AheadOfTimeApplication.Payments.class, AheadOfTimeApplication.Shipments.class})
class AheadOfTimeApplication {
    @Bean
    SecurityFilterChain open(HttpSecurity http) throws Exception {
        return http.authorizeHttpRequests(all -> all.anyRequest().permitAll())
                .csrf(csrf -> csrf.disable())
                .build();
    }

    public static void main(String[] arguments) {
        SpringApplication.run(AheadOfTimeApplication.class, arguments);
    }

    @RestController
    static class Payments {
        private final TransactionTemplate transaction;

        Payments(PlatformTransactionManager transactions) {
            this.transaction = new TransactionTemplate(transactions);
        }

        @PostMapping("/payments")
        @Idempotent
        String pay() {
            return "paid";
        }

        @PostMapping("/failures")
        @Idempotent
        String payAndFail() {
            transaction.executeWithoutResult(status -> {});
            throw new IllegalStateException("after the commit");
        }
    }

    static class Shipments {
        @Idempotent(id = "#id")
        public String ship(String id) {
            return UUID.randomUUID().toString();
        }
    }
}
