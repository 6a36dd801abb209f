package io.idempotence.spring.method;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The application's JSON mapper. */
@Configuration(proxyBeanMethods = false)
class TestJson {
    @Bean
    ObjectMapper json() {
        return JsonMapper.builder().findAndAddModules().build();
    }
}
