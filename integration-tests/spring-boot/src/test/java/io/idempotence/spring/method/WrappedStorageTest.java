package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.ResultCodec;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.WebApplicationContext;

/** In-transaction mode with a storage inside a wrapper, or beside another storage. */
@Tag("all")
@ExtendWith(OutputCaptureExtension.class)
class WrappedStorageTest {
    private static final String LAZY = "--spring.main.lazy-initialization=true";

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

    @Import(Bookings.class)
    static class InTransaction {
        @Bean
        JdbcIdempotenceStorage inTransaction(DataSource dataSource) {
            return JdbcIdempotenceStorage.builder(dataSource)
                    .createIfMissing()
                    .inTransaction()
                    .build();
        }
    }

    @Import(InTransaction.class)
    static class OutsideOfABean {
        @Bean
        Idempotence idempotence(JdbcIdempotenceStorage storage) {
            return Idempotence.over((IdempotenceStorage) OutsideOfSpring.proxy(storage));
        }
    }

    /** The application chooses between its storages itself. */
    @Import(InTransaction.class)
    static class OneOfTwo {
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

    /** Storages that fail the test if a transaction makes them. */
    @Import(OneOfTwo.class)
    static class OthersAreBroken {
        @Bean
        IdempotenceStorage broken() {
            throw new IllegalStateException("no Redis here");
        }

        @Bean
        @Scope(value = WebApplicationContext.SCOPE_REQUEST, proxyMode = ScopedProxyMode.INTERFACES)
        IdempotenceStorage ofTenant() {
            return IdempotenceStorage.inMemory();
        }
    }

    @Import(OthersAreBroken.class)
    static class OneIsLost {
        static final AtomicBoolean LOST = new AtomicBoolean();

        @Bean
        @Scope(BeanDefinition.SCOPE_PROTOTYPE)
        IdempotenceStorage ofEachUser() {
            if (LOST.get()) {
                throw new IllegalStateException("lost");
            }
            return IdempotenceStorage.inMemory();
        }
    }

    /** A database of its own. */
    private static String database() {
        return "--spring.datasource.url=jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1";
    }

    private static TestServer start(Class<?> application) {
        return TestServer.start(
                application,
                database(),
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
    void aStorageThatIsABeanIsMarkedInsideAnything() {
        try (TestServer server = TestServer.start(OutsideOfABean.class, database())) {
            assertIsMarked(server);
        }
    }

    @Test
    void aStorageBesideAnotherIsMarked() {
        try (TestServer server = TestServer.start(OneOfTwo.class, database())) {
            assertIsMarked(server);
        }
    }

    @Test
    void aTransactionInAnExecutionOfAnotherStorageIsRolledBack() {
        try (TestServer server = TestServer.start(OneOfTwo.class, database())) {
            Idempotence other = Idempotence.over(server.context().getBean("other", IdempotenceStorage.class));
            assertIsRolledBack(server, other, "this execution lost its claim");
        }
    }

    @Test
    void aTransactionMakesNoStorage() {
        try (TestServer server = TestServer.start(OthersAreBroken.class, database(), LAZY)) {
            server.bean(Idempotence.class);
            assertThat(transaction(server).<String>execute(status -> "done")).isEqualTo("done");
            assertIsMarked(server);
        }
    }

    @Test
    void aSecondStorageThatIsMadeLaterRollsTransactionsBack() {
        try (TestServer server = TestServer.start(TwoInTransactions.class, database(), LAZY)) {
            Idempotence idempotence = server.bean(Idempotence.class);
            assertIsMarked(server);
            server.context().getBean("second");
            assertIsRolledBack(server, idempotence, "2 storages are in in-transaction mode.");
        }
    }

    @Test
    void aStorageThatCannotBeFoundRollsTransactionsBack() {
        try (TestServer server = TestServer.start(OneIsLost.class, database(), LAZY)) {
            Idempotence idempotence = server.bean(Idempotence.class);
            OneIsLost.LOST.set(true);
            assertIsRolledBack(server, idempotence, "'ofEachUser'");
        } finally {
            OneIsLost.LOST.set(false);
        }
    }

    private static TransactionTemplate transaction(TestServer server) {
        return new TransactionTemplate(server.bean(PlatformTransactionManager.class));
    }

    /** A transaction of an execution is rolled back, and its thread is left without one. */
    private static void assertIsRolledBack(TestServer server, Idempotence idempotence, String message) {
        JdbcTemplate jdbc = server.bean(JdbcTemplate.class);
        jdbc.execute("create table booking (id int)");
        assertThatThrownBy(() -> idempotence.execute(
                        IdempotenceId.of(UUID.randomUUID().toString()),
                        ResultCodec.text(),
                        execution -> transaction(server).execute(status -> {
                            jdbc.update("insert into booking values (1)");
                            return "never";
                        })))
                .hasMessageContaining(message);
        assertThat(TransactionSynchronizationManager.getResourceMap()).isEmpty();
        assertThat(TransactionSynchronizationManager.isSynchronizationActive()).isFalse();
        assertThat(jdbc.queryForObject("select count(*) from booking", Integer.class))
                .isZero();
    }

    private static void assertIsMarked(TestServer server) {
        JdbcTemplate jdbc = server.bean(JdbcTemplate.class);
        assertThat(server.post("/book", UUID.randomUUID().toString()).body()).isEqualTo("booked");
        assertThat(jdbc.queryForObject("select count(*) from idempotence_applied", Integer.class))
                .isEqualTo(1);
    }

    @Test
    void twoStoragesInThisModeFailTheStart(CapturedOutput output) {
        assertThatThrownBy(() ->
                        TestServer.start(TwoInTransactions.class, database()).close())
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
