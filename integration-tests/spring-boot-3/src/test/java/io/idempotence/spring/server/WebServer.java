package io.idempotence.spring.server;

import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.context.annotation.Bean;

/** A web server without the rest of Spring Boot's auto-configuration. */
class WebServer {
    @Bean
    TomcatServletWebServerFactory webServer() {
        return new TomcatServletWebServerFactory(0);
    }
}
