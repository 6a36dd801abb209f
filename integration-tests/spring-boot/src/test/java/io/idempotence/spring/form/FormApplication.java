package io.idempotence.spring.form;

import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.multipart.MultipartFile;

/** A shop with forms. */
@SpringBootConfiguration
@EnableAutoConfiguration
class FormApplication {
    /** On a free port, with records in memory. */
    static SpringApplicationBuilder builder() {
        return new SpringApplicationBuilder(FormApplication.class)
                .properties(
                        "server.port=0",
                        "server.address=localhost",
                        "idempotence.server.storage=memory",
                        "spring.main.banner-mode=off");
    }

    static String site(ConfigurableApplicationContext application) {
        return "http://localhost:" + application.getEnvironment().getProperty("local.server.port");
    }

    @Bean
    SecurityFilterChain security(HttpSecurity security) throws Exception {
        return security.authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                .httpBasic(Customizer.withDefaults())
                .csrf(csrf -> csrf.ignoringRequestMatchers("/webhook"))
                .build();
    }

    @Bean
    UserDetailsService users() {
        return new InMemoryUserDetailsManager(
                User.withUsername("anna").password("{noop}secret").roles("USER").build());
    }

    /** In front of everything, to see what arrives. */
    @Bean
    FilterRegistrationBean<Filter> arrivals(Shop shop) {
        FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
            if (((HttpServletRequest) request).getMethod().equals("POST")) {
                shop.arrived.incrementAndGet();
            }
            chain.doFilter(request, response);
        });
        registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
        registration.setAsyncSupported(true);
        return registration;
    }

    @Controller
    static class Shop {
        final Queue<String> booked = new ConcurrentLinkedQueue<>();
        final AtomicInteger arrived = new AtomicInteger();
        volatile CountDownLatch running = new CountDownLatch(0);
        volatile CountDownLatch bank = new CountDownLatch(0);

        /** From now on, the bank responds when {@link #bank} is counted down. */
        void slowBank() {
            running = new CountDownLatch(1);
            bank = new CountDownLatch(1);
        }

        /** Responds as soon as a payment runs. */
        @GetMapping("/running")
        @ResponseBody
        String running() throws InterruptedException {
            return "" + running.await(30, TimeUnit.SECONDS);
        }

        /** A page that browsers may show again when their user goes back. */
        @GetMapping("/pay")
        String form(HttpServletResponse response) {
            response.setHeader("Cache-Control", "private, no-cache");
            return "forms/pay";
        }

        @GetMapping("/old")
        String oldForm(HttpServletRequest request) {
            new FormTokens(Duration.ofSeconds(-1), Clock.systemUTC()).offer(request);
            return "forms/pay";
        }

        @PostMapping("/pay")
        String pay(@RequestParam String amount, HttpServletRequest request) throws InterruptedException {
            booked.add(amount);
            int number = booked.size();
            running.countDown();
            bank.await(30, TimeUnit.SECONDS);
            if (amount.equals("13")) {
                IdempotenceFilter.execution(request).orElseThrow().markUnknown();
            }
            return "redirect:/paid/" + number;
        }

        /** As one that checks a signature reads it. */
        @PostMapping("/webhook")
        @ResponseBody
        String webhook(HttpServletRequest request) throws IOException {
            return new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }

        @PostMapping("/upload")
        String upload(@RequestParam MultipartFile receipt) throws IOException {
            booked.add(new String(receipt.getBytes()));
            return "redirect:/paid/" + booked.size();
        }

        @GetMapping(path = "/paid/{number}", produces = "text/html")
        @ResponseBody
        String paid(@PathVariable int number) {
            return "<!doctype html><html lang=en><title>Paid</title><h1>Payment " + number + " is booked</h1>";
        }
    }
}
