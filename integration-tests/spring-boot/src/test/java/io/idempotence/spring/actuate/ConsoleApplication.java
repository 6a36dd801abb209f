package io.idempotence.spring.actuate;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.ResultCodec;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import jakarta.servlet.http.HttpServletRequest;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application with a console, a customer, and an operator. Its rules do not mention the console. */
@SpringBootConfiguration
@EnableAutoConfiguration
class ConsoleApplication {
    @Bean
    SecurityFilterChain security(HttpSecurity security) throws Exception {
        return security.authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                .formLogin(Customizer.withDefaults())
                .csrf(csrf -> csrf.ignoringRequestMatchers("/payments"))
                .build();
    }

    @Bean
    UserDetailsService users() {
        return new InMemoryUserDetailsManager(
                User.withUsername("anna")
                        .password("{noop}secret")
                        .roles("CUSTOMER")
                        .build(),
                User.withUsername("olga")
                        .password("{noop}secret")
                        .roles("IDEMPOTENCE_OPERATOR")
                        .build());
    }

    @Bean
    Records records() {
        return new Records();
    }

    @Bean
    IdempotenceStorage storage(Records records) {
        return records.storage;
    }

    @RestController
    static class Payments {
        @PostMapping("/payments")
        String pay(HttpServletRequest request) {
            IdempotenceFilter.execution(request).orElseThrow().markUnknown();
            return "the bank did not respond";
        }
    }

    /** The records of a payment service, whose time the test moves. */
    static final class Records extends Clock {
        private final IdempotenceStorage storage = IdempotenceStorage.inMemory(10_000, this);
        private final SecureRandom random = new SecureRandom();
        private Instant now = Instant.parse("2026-11-22T12:00:00Z");

        @Override
        public Instant instant() {
            return now;
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }

        void pass(Duration time) {
            now = now.plus(time);
        }

        void clear() {
            storage.list("payments").toList().forEach(record -> storage.delete(record.key()));
        }

        /** A claim whose owner never comes back. */
        void claim(String id, Duration retention) {
            storage.claim(new ClaimRequest(
                    IdempotenceAdmin.of(storage, "payments").requestKey(new IdempotenceId(id), ""),
                    Fingerprint.NONE,
                    Owner.random(random),
                    Duration.ofSeconds(30),
                    retention,
                    false));
        }

        static void unknown(Idempotence idempotence, String id) throws Exception {
            idempotence.execute(new IdempotenceId(id), ResultCodec.text(), execution -> {
                execution.markUnknown();
                return "";
            });
        }
    }
}
