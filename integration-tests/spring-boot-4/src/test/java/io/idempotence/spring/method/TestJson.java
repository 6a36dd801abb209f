package io.idempotence.spring.method;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.json.JsonMapper;

/** The application's JSON mapper. */
@Configuration(proxyBeanMethods = false)
class TestJson {
    @Bean
    JsonMapper json() {
        return JsonMapper.builder().findAndAddModules().build();
    }
}
