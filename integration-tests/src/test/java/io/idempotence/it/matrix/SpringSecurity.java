package io.idempotence.it.matrix;

import static org.springframework.security.config.Customizer.withDefaults;

import jakarta.servlet.Filter;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configuration.EnableWebSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.crypto.password.PasswordEncoder;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

/** Spring Security with its defaults, basic authentication and one user. */
final class SpringSecurity {
    static final String CREDENTIALS =
            Base64.getEncoder().encodeToString("user:secret".getBytes(StandardCharsets.UTF_8));

    private SpringSecurity() {}

    static Filter filter() {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Configuration.class);
        return context.getBean("springSecurityFilterChain", Filter.class);
    }

    @EnableWebSecurity
    static class Configuration {
        @Bean
        SecurityFilterChain chain(HttpSecurity http) throws Exception {
            return http.csrf(csrf -> csrf.disable())
                    .httpBasic(withDefaults())
                    .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .build();
        }

        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("user").password("secret").build());
        }

        /** Takes no time: hashes of passwords are meant to. */
        @Bean
        PasswordEncoder plain() {
            return new PasswordEncoder() {
                @Override
                public String encode(CharSequence password) {
                    return password.toString();
                }

                @Override
                public boolean matches(CharSequence password, String encoded) {
                    return encoded.contentEquals(password);
                }
            };
        }
    }
}
