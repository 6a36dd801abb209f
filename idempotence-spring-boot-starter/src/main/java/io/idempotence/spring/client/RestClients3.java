package io.idempotence.spring.client;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.web.client.RestClientCustomizer;
import org.springframework.boot.web.client.RestTemplateCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;

/** The builders of Spring Boot 3. Last of the customizers, so that its interceptor is first. */
@AutoConfiguration(after = IdempotenceClientAutoConfiguration.class)
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnClass(RestClientCustomizer.class)
@ConditionalOnBean(RestClientInstaller.class)
class RestClients3 {
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
