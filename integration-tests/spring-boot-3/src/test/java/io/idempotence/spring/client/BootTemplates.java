package io.idempotence.spring.client;

import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.context.ApplicationContext;
import org.springframework.web.client.RestTemplate;

/** What this version of Spring Boot builds. */
final class BootTemplates {
    private BootTemplates() {}

    static RestTemplate restTemplate(ApplicationContext application) {
        return application.getBean(RestTemplateBuilder.class).build();
    }
}
