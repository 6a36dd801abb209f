package io.idempotence.spring.form;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A server half in memory. */
@Configuration(proxyBeanMethods = false)
class FormServer {
    @Bean
    IdempotenceStorage storage() {
        return IdempotenceStorage.inMemory();
    }

    @Bean
    Idempotence idempotence(IdempotenceStorage storage) {
        return Idempotence.over(storage);
    }

    @Bean
    FilterRegistrationBean<IdempotenceFilter> idempotenceFilter(Idempotence idempotence) {
        FilterRegistrationBean<IdempotenceFilter> registration = new FilterRegistrationBean<>(
                IdempotenceFilter.builder(idempotence).keyOptional().build());
        registration.setOrder(10);
        registration.setAsyncSupported(true);
        return registration;
    }
}
