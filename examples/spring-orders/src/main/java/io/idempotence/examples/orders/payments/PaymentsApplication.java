package io.idempotence.examples.orders.payments;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/** The payment service. Everything about idempotence is one annotation and payments.yml. */
@SpringBootApplication
public class PaymentsApplication {
    /**
     * Starts the service alone.
     *
     * @param args Spring's
     */
    public static void main(String[] args) {
        System.setProperty("spring.config.name", "payments");
        SpringApplication.run(PaymentsApplication.class, args);
    }

    /** Callers of the API are known by the network here; the console and Actuator want a login. */
    @Bean
    SecurityFilterChain security(HttpSecurity http) throws Exception {
        return http.authorizeHttpRequests(requests -> requests.requestMatchers("/payments/**", "/error")
                        .permitAll()
                        .anyRequest()
                        .hasRole("IDEMPOTENCE_OPERATOR"))
                .csrf(csrf -> csrf.ignoringRequestMatchers("/payments/**", "/actuator/**"))
                .formLogin(Customizer.withDefaults())
                .httpBasic(Customizer.withDefaults())
                .build();
    }
}
