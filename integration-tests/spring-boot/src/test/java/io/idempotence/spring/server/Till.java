package io.idempotence.spring.server;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The smallest application: a web server, a servlet, and the server half. */
@Configuration(proxyBeanMethods = false)
@ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceServerHealthAutoConfiguration.class})
class Till extends WebServer {
    static ConfigurableApplicationContext start(Class<? extends Till> application, String... arguments) {
        return new SpringApplicationBuilder(application)
                .properties("server.port=0", "spring.main.banner-mode=off")
                .run(arguments);
    }

    @Bean
    ServletRegistrationBean<Sale> sale() {
        return new ServletRegistrationBean<>(new Sale(), "/sales");
    }

    static final class Sale extends HttpServlet {
        private static final long serialVersionUID = 1L;

        final AtomicInteger executions = new AtomicInteger();

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().print("sale " + executions.incrementAndGet());
        }
    }
}
