package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.RequestMapping;

/** Pages with forms that are shown instead of what was asked for. */
class FormOnErrorPageTest {
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Pages.class)
    static class Application {
        @Bean
        SecurityFilterChain security(HttpSecurity security) throws Exception {
            return security.authorizeHttpRequests(
                            requests -> requests.anyRequest().permitAll())
                    .exceptionHandling(denied -> denied.accessDeniedPage("/denied"))
                    .build();
        }
    }

    @Controller
    static class Pages {
        @RequestMapping("/denied")
        String denied() {
            return "forms/pay";
        }
    }

    @Test
    void aPageThatSpringSecurityForwardsToMayHaveAForm() throws Exception {
        try (ConfigurableApplicationContext application = new SpringApplicationBuilder(Application.class)
                .properties("server.port=0", "idempotence.server.storage=memory", "spring.main.banner-mode=off")
                .run()) {
            HttpResponse<String> denied = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create(FormApplication.site(application) + "/without-csrf"))
                                    .header("Accept", "text/html")
                                    .POST(HttpRequest.BodyPublishers.noBody())
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            assertThat(denied.statusCode()).isEqualTo(403);
            assertThat(denied.body()).contains("name=\"_idempotence\"");
        }
    }
}
