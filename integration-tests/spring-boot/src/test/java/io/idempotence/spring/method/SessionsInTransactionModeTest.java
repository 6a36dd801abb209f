package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.core.Ordered;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.security.web.util.OnCommittedResponseWrapper;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** In-transaction mode, and a filter in front that saves sessions in transactions of its own when a response is committed. */
@Timeout(180)
@Tag("all")
class SessionsInTransactionModeTest {
    private static final JdbcTemplate HERE = database();
    private static final JdbcTemplate ELSEWHERE = database();
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    private static JdbcTemplate database() {
        JdbcTemplate database = new JdbcTemplate(
                new DriverManagerDataSource("jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1", "sa", ""));
        database.execute("create table session (id int)");
        return database;
    }

    @BeforeAll
    static void start() {
        server = TestServer.start(
                Application.class,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Import(Handlers.class)
    static class Application {
        @Bean
        DataSource dataSource() {
            return HERE.getDataSource();
        }

        @Bean
        @Primary
        PlatformTransactionManager here() {
            return new JdbcTransactionManager(HERE.getDataSource());
        }

        @Bean
        PlatformTransactionManager elsewhere() {
            return new JdbcTransactionManager(ELSEWHERE.getDataSource());
        }

        @Bean
        FilterRegistrationBean<SessionFilter> sessionsHere(PlatformTransactionManager here) {
            return sessions("/here/*", here, HERE);
        }

        @Bean
        FilterRegistrationBean<SessionFilter> sessionsElsewhere(PlatformTransactionManager elsewhere) {
            return sessions("/elsewhere/*", elsewhere, ELSEWHERE);
        }

        private static FilterRegistrationBean<SessionFilter> sessions(
                String paths, PlatformTransactionManager transactions, JdbcTemplate database) {
            TransactionTemplate own = new TransactionTemplate(transactions);
            own.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
            FilterRegistrationBean<SessionFilter> filter = new FilterRegistrationBean<>(new SessionFilter(
                    () -> own.executeWithoutResult(status -> database.update("insert into session values (1)"))));
            filter.setName(paths);
            filter.addUrlPatterns(paths);
            filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return filter;
        }
    }

    record SessionFilter(Runnable save) implements Filter {
        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, new OnCommittedResponseWrapper((HttpServletResponse) response) {
                @Override
                protected void onResponseCommitted() {
                    save.run();
                }
            });
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        @PostMapping("/{where}/response")
        String response(@PathVariable("where") String where) {
            return "saved " + where;
        }

        @PostMapping("/{where}/error")
        void error(HttpServletResponse response) throws IOException {
            response.sendError(409);
        }

        @PostMapping("/{where}/completed")
        void completed(HttpServletRequest request, HttpServletResponse response) {
            AsyncContext async = request.startAsync(request, response);
            async.start(() -> {
                try {
                    async.getResponse().getOutputStream().print("completed");
                    async.getResponse().flushBuffer();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                async.complete();
            });
        }
    }

    /** It was rolled back, and the caller got a 500 in place of the recorded response. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "/here/response",
                "/elsewhere/response",
                "/here/error",
                "/elsewhere/error",
                "/here/completed",
                "/elsewhere/completed"
            })
    void aTransactionOfAFilterInFrontIsNotPartOfTheExecutionThatHasEnded(String path) {
        TestServer.Response first = server.post(path, id);
        assertThat(first.status()).isEqualTo(path.endsWith("/error") ? 409 : 200);
        assertThat(HERE.update("delete from session") + ELSEWHERE.update("delete from session"))
                .isEqualTo(1);
        assertThat(HERE.queryForObject("select count(*) from idempotence_applied", Integer.class))
                .isZero();
        assertThat(server.post(path, id).same()).isEqualTo(first.same());
        HERE.update("delete from session");
        ELSEWHERE.update("delete from session");
    }
}
