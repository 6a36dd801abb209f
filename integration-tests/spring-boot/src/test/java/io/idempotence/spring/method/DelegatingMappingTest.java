package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import jakarta.servlet.http.HttpServletRequest;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.servlet.HandlerExecutionChain;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** Handlers behind a mapping that delegates to others, which are no beans, as {@code @RepositoryRestController}s of Spring Data REST are. */
@Tag("all")
@Timeout(180)
class DelegatingMappingTest {
    private static final TestServer SERVER = TestServer.start(Application.class);

    @AfterAll
    static void stop() {
        SERVER.close();
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface OfRepository {}

    static class OfRepositories extends RequestMappingHandlerMapping {
        @Override
        protected boolean isHandler(Class<?> type) {
            return type.isAnnotationPresent(OfRepository.class);
        }
    }

    record Delegating(List<HandlerMapping> delegates) implements HandlerMapping, Iterable<HandlerMapping>, Ordered {
        /** In front of the mapping of resources, which takes every path. */
        @Override
        public int getOrder() {
            return Ordered.LOWEST_PRECEDENCE - 100;
        }

        @Override
        public Iterator<HandlerMapping> iterator() {
            return delegates.iterator();
        }

        @Override
        public HandlerExecutionChain getHandler(HttpServletRequest request) throws Exception {
            for (HandlerMapping delegate : delegates) {
                HandlerExecutionChain found = delegate.getHandler(request);
                if (found != null) {
                    return found;
                }
            }
            return null;
        }
    }

    @OfRepository
    @ResponseBody
    static class Orders {
        @PostMapping("/orders")
        @Idempotent
        public String create() {
            return "created " + UUID.randomUUID();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import(Orders.class)
    static class Application {
        @Bean
        HandlerMapping repositories(ApplicationContext context) {
            OfRepositories mapping = new OfRepositories();
            mapping.setApplicationContext(context);
            mapping.afterPropertiesSet();
            return new Delegating(List.of(mapping));
        }
    }

    /** It failed the start, because no mapping seemed to know it. */
    @Test
    void aHandlerRunsOnce() {
        String id = UUID.randomUUID().toString();
        assertThat(SERVER.post("/orders", null).refusal()).isEqualTo("key-missing");
        String first = SERVER.post("/orders", id).body();
        assertThat(first).startsWith("created");
        assertThat(SERVER.post("/orders", id).body()).isEqualTo(first);
    }
}
