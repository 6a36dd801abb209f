package io.idempotence.spring.server;

import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.server.ResponseStatusException;

/** An application as a user writes it: Spring MVC, Spring Security, Actuator, and the starter. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import(Orders.OrderController.class)
class Orders {
    static final String USER = "alice";
    static final String PASSWORD = "secret";

    /** Starts the application on a free port. */
    static ConfigurableApplicationContext start(String... arguments) {
        return start(Orders.class, arguments);
    }

    static ConfigurableApplicationContext start(Class<?> application, String... arguments) {
        return new SpringApplicationBuilder(application)
                .properties(
                        "server.port=0",
                        "spring.main.banner-mode=off",
                        "spring.application.name=orders",
                        "spring.security.user.name=" + USER,
                        "spring.security.user.password=" + PASSWORD,
                        "spring.mvc.hiddenmethod.filter.enabled=true",
                        "management.endpoint.health.show-details=always",
                        "management.endpoint.health.show-components=always",
                        "management.endpoints.web.exposure.include=health,metrics,loggers")
                .run(arguments);
    }

    @Bean
    SecurityFilterChain security(HttpSecurity http) throws Exception {
        return http.authorizeHttpRequests(requests -> requests.requestMatchers("/actuator/**", "/open/**", "/error")
                        .permitAll()
                        .anyRequest()
                        .authenticated())
                .httpBasic(Customizer.withDefaults())
                .csrf(csrf -> csrf.disable())
                .build();
    }

    @RestController
    static class OrderController {
        final AtomicInteger executions = new AtomicInteger();

        @PostMapping("/orders")
        ResponseEntity<String> create(Principal user) {
            int number = executions.incrementAndGet();
            return ResponseEntity.status(HttpStatus.CREATED)
                    .header("Location", "/orders/" + number)
                    .body("order " + number + " of " + user.getName());
        }

        @PostMapping("/open/orders")
        String createOpen() {
            return "order " + executions.incrementAndGet();
        }

        @PostMapping("/open/later")
        Callable<String> later() {
            return () -> "later " + executions.incrementAndGet();
        }

        @PostMapping("/open/refused")
        String refused() {
            throw new ResponseStatusException(HttpStatus.CONFLICT, "sold out " + executions.incrementAndGet());
        }

        /** The name comes from a form in the body of a PUT, which Spring's form content filter parses. */
        @PutMapping("/open/names")
        String rename(@RequestParam String name, HttpServletRequest request) {
            boolean hasContext = RequestContextHolder.getRequestAttributes() != null;
            return request.getMethod() + " " + name + " " + hasContext + " " + executions.incrementAndGet();
        }

        @RequestMapping("/open/method")
        String method(HttpServletRequest request) {
            return request.getMethod() + " " + executions.incrementAndGet();
        }
    }
}
