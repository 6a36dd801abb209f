package io.idempotence.spring.client;

import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.restclient.RestClientCustomizer;
import org.springframework.boot.restclient.RestTemplateCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;

/** The builders of Spring Boot 4. Last of the customizers, so that its interceptor is first. */
@Configuration(proxyBeanMethods = false)
@ConditionalOnClass(RestClientCustomizer.class)
class RestClients4 {
    @Bean
    @Order
    RestClientCustomizer idempotenceRestClientCustomizer(RestClientInstaller installer) {
        return installer::install;
    }

    @Bean
    @Order
    RestTemplateCustomizer idempotenceRestTemplateCustomizer(RestClientInstaller installer) {
        return installer::install;
    }
}
