package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.Idempotence;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.UUID;
import javax.sql.DataSource;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** In-transaction mode with a storage inside a wrapper, for example one that observes it. */
@ExtendWith(OutputCaptureExtension.class)
class WrappedStorageTest {
    private static final String DATABASE =
            "--spring.datasource.url=jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1";

    @RestController
    static class Bookings {
        @Transactional
        @PostMapping("/book")
        public String book() {
            return "booked";
        }
    }

    @Import(Bookings.class)
    static class InProxies {
        @Bean
        static BeanPostProcessor wrapping() {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessAfterInitialization(Object bean, String beanName) {
                    return bean instanceof IdempotenceStorage ? proxy(proxy(bean)) : bean;
                }
            };
        }

        private static Object proxy(Object storage) {
            ProxyFactory proxy = new ProxyFactory(storage);
            proxy.addAdvice((MethodInterceptor) call -> call.proceed());
            return proxy.getProxy();
        }
    }

    @Import(Bookings.class)
    static class OutsideOfSpring {
        @Bean
        static BeanPostProcessor wrapping() {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessAfterInitialization(Object bean, String beanName) {
                    return bean instanceof IdempotenceStorage ? proxy(bean) : bean;
                }
            };
        }

        private static Object proxy(Object storage) {
            return Proxy.newProxyInstance(
                    IdempotenceStorage.class.getClassLoader(),
                    new Class<?>[] {IdempotenceStorage.class},
                    (proxy, method, arguments) -> {
                        try {
                            return method.invoke(storage, arguments);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
        }
    }

    /** The application chooses between its storages itself. */
    @Import(Bookings.class)
    static class OneOfTwo {
        @Bean
        JdbcIdempotenceStorage inTransaction(DataSource dataSource) {
            return JdbcIdempotenceStorage.builder(dataSource)
                    .createIfMissing()
                    .inTransaction()
                    .build();
        }

        @Bean
        IdempotenceStorage other() {
            return IdempotenceStorage.inMemory();
        }

        @Bean
        Idempotence idempotence(JdbcIdempotenceStorage storage) {
            return Idempotence.over(storage);
        }
    }

    @Import(OneOfTwo.class)
    static class TwoInTransactions {
        @Bean
        IdempotenceStorage second(DataSource dataSource) {
            return JdbcIdempotenceStorage.builder(dataSource).inTransaction().build();
        }
    }

    private static TestServer start(Class<?> application) {
        return TestServer.start(
                application,
                DATABASE,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true");
    }

    @Test
    void aStorageInSpringProxiesIsMarked() {
        try (TestServer server = start(InProxies.class)) {
            assertIsMarked(server);
        }
    }

    @Test
    void aStorageBesideAnotherIsMarked() {
        try (TestServer server = TestServer.start(OneOfTwo.class, DATABASE)) {
            assertIsMarked(server);
        }
    }

    private static void assertIsMarked(TestServer server) {
        JdbcTemplate jdbc = server.bean(JdbcTemplate.class);
        jdbc.update("delete from idempotence_applied");
        assertThat(server.post("/book", UUID.randomUUID().toString()).body()).isEqualTo("booked");
        assertThat(jdbc.queryForObject("select count(*) from idempotence_applied", Integer.class))
                .isEqualTo(1);
    }

    @Test
    void twoStoragesInThisModeFailTheStart(CapturedOutput output) {
        assertThatThrownBy(() ->
                        TestServer.start(TwoInTransactions.class, DATABASE).close())
                .isNotNull();

        assertThat(output)
                .contains("2 storages are in in-transaction mode.")
                .contains("Keep one of them, or build the others without inTransaction().");
    }

    @Test
    void aStorageThatIsHiddenFailsTheStart(CapturedOutput output) {
        assertThatThrownBy(() -> start(OutsideOfSpring.class).close()).isNotNull();

        assertThat(output)
                .contains("APPLICATION FAILED TO START")
                .contains("The property idempotence.server.jdbc.in-transaction has the value 'true' (")
                .contains("the storage is wrapped in a jdk.proxy", "so its marks cannot be set")
                .contains("Wrap the storage in a proxy of Spring AOP, or wrap the DataSource instead.");
    }
}
