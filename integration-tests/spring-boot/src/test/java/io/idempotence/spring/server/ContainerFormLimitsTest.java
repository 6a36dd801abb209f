package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.mock.env.MockEnvironment;
import org.springframework.mock.web.MockServletContext;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The limits of forms that the application sets for its container. A form that it allows was refused if it had an ID. */
@Tag("all")
class ContainerFormLimitsTest {
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        @Bean
        SecurityFilterChain open(HttpSecurity http) throws Exception {
            return http.csrf(csrf -> csrf.disable()).build();
        }

        @RestController
        static class Forms {
            @PostMapping("/forms")
            String count(@RequestParam MultiValueMap<String, String> fields) {
                return fields.values().stream()
                                .mapToInt(values ->
                                        values.stream().mapToInt(String::length).sum())
                                .sum() + " in " + fields.size();
            }
        }
    }

    private static ConfigurableApplicationContext started(String... arguments) {
        return new SpringApplicationBuilder(Application.class)
                .properties("server.port=0", "spring.main.banner-mode=off", "idempotence.server.storage=memory")
                .run(arguments);
    }

    private static String form(int parameters, int length) {
        StringBuilder form = new StringBuilder();
        for (int i = 0; i < parameters; i++) {
            form.append(i == 0 ? "" : "&").append("f").append(i).append('=').append("x".repeat(length));
        }
        return form.toString();
    }

    private static int status(ConfigurableApplicationContext application, String id, String form) {
        return Caller.of(application).form("POST", "/forms", id, form).statusCode();
    }

    @Test
    void aFormThatTheContainerAllowsIsAllowedWithAnId() {
        try (ConfigurableApplicationContext application =
                started("--server.tomcat.max-http-form-post-size=4MB", "--server.tomcat.max-parameter-count=20000")) {
            for (String form : new String[] {form(15_000, 1), form(3, 1_000_000)}) {
                assertThat(status(application, "", form)).isEqualTo(200);
                assertThat(status(application, "id-" + form.length(), form)).isEqualTo(200);
            }
        }
    }

    @Test
    void aFormThatTheContainerRefusesIsRefusedWithAnId() {
        try (ConfigurableApplicationContext application =
                started("--server.tomcat.max-http-form-post-size=1KB", "--server.tomcat.max-parameter-count=10")) {
            assertThat(status(application, "too-many", form(11, 1))).isGreaterThanOrEqualTo(400);
            assertThat(status(application, "too-long", form(1, 2000))).isEqualTo(413);
        }
    }

    @Test
    void noLimitOfTheContainerIsNone() {
        try (ConfigurableApplicationContext application =
                started("--server.tomcat.max-http-form-post-size=-1", "--server.tomcat.max-parameter-count=-1")) {
            assertThat(status(application, "many", form(15_000, 1))).isEqualTo(200);
            assertThat(status(application, "long", form(3, 1_000_000))).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "-",
            value = {
                "Apache Tomcat/11.0.1 | server.tomcat.max-parameter-count=2000000    | 1000000 | -",
                "Apache Tomcat/11.0.1 | server.tomcat.max-http-form-post-size=0      | -       | -",
                "Apache Tomcat/11.0.1 | server.tomcat.max-http-form-post-size=3GB    | -       | 1073741824",
                "Apache Tomcat/11.0.1 | server.jetty.max-form-keys=7                 | -       | -",
                "jetty/12.1.5         | server.jetty.maxFormKeys=7                   | 7       | -",
                "jetty/12.1.5         | server.jetty.max-http-form-post-size=2KB     | -       | 2048",
                "jetty/12.1.5         | server.jetty.max-http-form-post-size=-1      | -       | -",
                "jetty/12.1.5         | server.tomcat.max-parameter-count=7          | -       | -",
                "Undertow - 2.3.23    | server.tomcat.max-parameter-count=7          | -       | -"
            })
    void onlyThePropertiesOfTheContainerCount(String server, String property, Integer parameters, Integer bytes) {
        MockServletContext container = new MockServletContext() {
            @Override
            public String getServerInfo() {
                return server;
            }
        };
        String[] parts = property.split("=");
        MockEnvironment environment = new MockEnvironment().withProperty(parts[0], parts[1]);

        assertThat(ContainerFormLimits.of(container, environment))
                .isEqualTo(new ContainerFormLimits(parameters, bytes));
    }

    @Test
    void thePropertyOfTheFilterIsStronger() {
        try (ConfigurableApplicationContext application =
                started("--server.tomcat.max-http-form-post-size=4MB", "--idempotence.server.max-form-size=1KB")) {
            assertThat(status(application, "", form(1, 2000))).isEqualTo(200);
            assertThat(status(application, "long", form(1, 2000))).isEqualTo(413);
        }
    }
}
