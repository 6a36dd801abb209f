package io.idempotence.spring.client;

import org.springframework.boot.autoconfigure.web.client.RestClientBuilderConfigurer;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.context.ApplicationContext;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/** The HTTP clients that this version of Spring Boot builds. */
final class BootTemplates {
    private BootTemplates() {}

    static RestClient.Builder restClientBuilder(ApplicationContext application) {
        return application.getBean(RestClientBuilderConfigurer.class).configure(RestClient.builder());
    }

    static RestTemplate restTemplate(ApplicationContext application) {
        return application.getBean(RestTemplateBuilder.class).build();
    }
}
