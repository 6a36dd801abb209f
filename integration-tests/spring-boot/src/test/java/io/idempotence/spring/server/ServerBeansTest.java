package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.mockito.Mockito.mock;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.spring.method.IdempotenceMethodAutoConfiguration;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.aopalliance.intercept.MethodInterceptor;
import org.h2.jdbcx.JdbcConnectionPool;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.UnifiedJedis;

/** The beans of the server half, depending on those of the application. */
@ExtendWith(OutputCaptureExtension.class)
class ServerBeansTest {
    private final WebApplicationContextRunner web = new WebApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(IdempotenceServerAutoConfiguration.class));

    @Test
    void theProviderHalfCanBeSwitchedOff() {
        web.withPropertyValues("idempotence.server.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean(Idempotence.class));
    }

    /** The start failed, or two services had one namespace. */
    @Test
    @DisplayName("P5: services with different names have different namespaces, in whatever script the names are")
    void anApplicationMayHaveAnyName() {
        assertThat(namespaceOf("My-orders")).isEqualTo("My-orders");
        assertThat(namespaceOf("My orders")).startsWith("My-orders-");
        String longest = "o".repeat(64);
        assertThat(namespaceOf(longest)).isEqualTo(longest);
        assertThat(Stream.of("订单服务", "支付服务", "订单-v2", "支付-v2", "_", "o".repeat(65), "o".repeat(66))
                        .map(this::namespaceOf))
                .doesNotHaveDuplicates()
                .allMatch(namespace -> namespace.matches("[a-z0-9-]{8,64}"))
                .anyMatch(namespace -> namespace.startsWith("v2-"));
    }

    private String namespaceOf(String application) {
        AtomicReference<String> namespace = new AtomicReference<>();
        web.withPropertyValues("spring.application.name=" + application)
                .run(context ->
                        namespace.set(context.getBean(Idempotence.class).admin().namespace()));
        return namespace.get();
    }

    @Test
    void springDataComesBeforeJedis() {
        web.withBean(RedisConnectionFactory.class, () -> new LettuceConnectionFactory("127.0.0.1", 1))
                .withBean(UnifiedJedis.class, () -> new JedisPooled("127.0.0.1", 1))
                .run(context ->
                        assertThat(context.getBean(ChosenStorage.class).kind()).isEqualTo("redis"));
    }

    @Test
    void aJedisClientIsUsedWithoutSpringData() {
        web.withClassLoader(new FilteredClassLoader(RedisConnectionFactory.class))
                .withBean("client", UnifiedJedis.class, () -> new JedisPooled("127.0.0.1", 1))
                .run(context -> {
                    assertThat(context.getBean(ChosenStorage.class).reason())
                            .isEqualTo("the UnifiedJedis 'client', chosen automatically");
                    assertThat(context.getBean(ChosenStorage.class).kind()).isEqualTo("jedis");
                });
    }

    @Test
    void theJedisClientCanBeChosen() {
        web.withPropertyValues("idempotence.server.storage=jedis")
                .withBean(RedisConnectionFactory.class, () -> new LettuceConnectionFactory("127.0.0.1", 1))
                .withBean(UnifiedJedis.class, () -> new JedisPooled("127.0.0.1", 1))
                .run(context ->
                        assertThat(context.getBean(ChosenStorage.class).kind()).isEqualTo("jedis"));
    }

    @Test
    void oneOfTwoConnectionFactoriesIsChosenByNameOrAsPrimary() {
        WebApplicationContextRunner two = web.withUserConfiguration(TwoRedis.class);
        two.run(context -> assertThat(context.getBean(ChosenStorage.class).reason())
                .startsWith("the RedisConnectionFactory that is primary"));
        two.withPropertyValues("idempotence.server.storage-bean=second")
                .run(context -> assertThat(context.getBean(ChosenStorage.class).reason())
                        .startsWith("the RedisConnectionFactory 'second'"));
    }

    @Test
    void memoryIsALoudLastResort(CapturedOutput output) {
        web.run(context ->
                assertThat(context.getBean(ChosenStorage.class).kind()).isEqualTo("memory"));
        assertThat(output).contains("WARN").contains("IDEMPOTENCE RECORDS ARE KEPT IN MEMORY");
    }

    @Test
    void profilesMayAllowMemory() {
        web.withPropertyValues("spring.profiles.active=prod", "idempotence.server.memory.forbidden-profiles=")
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(IdempotenceFilter.class));
    }

    @Test
    void anApplicationWithoutHandlersHasNoStorage() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(IdempotenceServerAutoConfiguration.class))
                .withPropertyValues("spring.profiles.active=prod")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void recordsSurviveARollbackThoughTheDataSourceIsAwareOfTransactions() {
        web.withUserConfiguration(AwareDatabase.class)
                .withPropertyValues("idempotence.server.storage=jdbc", "idempotence.server.jdbc.create-if-missing=true")
                .run(context -> {
                    assertThat(context).hasNotFailed().hasSingleBean(JdbcIdempotenceStorage.class);
                    Idempotence idempotence = context.getBean(Idempotence.class);
                    // The check of the start may still run.
                    await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                            .until(() -> idempotence.saveIfAbsent("one"));
                    assertThat(idempotence.saveIfAbsent("one")).isFalse();
                });
    }

    @Test
    void theApplicationsOwnBeansReplaceOurs() {
        web.withUserConfiguration(OwnBeans.class).run(context -> {
            assertThat(context)
                    .hasSingleBean(IdempotenceStorage.class)
                    .hasSingleBean(Idempotence.class)
                    .hasSingleBean(IdempotenceFilter.class)
                    .hasSingleBean(IdempotencePolicy.class)
                    .hasSingleBean(IdempotenceFilterRegistrationBean.class);
            OwnBeans own = context.getBean(OwnBeans.class);
            assertThat(context.getBean(IdempotenceFilterRegistrationBean.class).getFilter())
                    .isSameAs(own.filter);
            assertThat(context.getBean(IdempotenceFilterRegistrationBean.class).getOrder())
                    .isEqualTo(7);
        });
    }

    /** A mock returns a duration of zero. The message named a part of the circuit breaker. */
    @Test
    void aStorageWithoutADurationOfSlowCallsIsNamed() {
        web.withBean(IdempotenceStorage.class, () -> mock(IdempotenceStorage.class))
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .hasMessageMatching(
                                "slowCall\\(\\) of .*IdempotenceStorage.* must be at least 1 ms, got PT0S"));
    }

    @Test
    void aStorageThatIsWrappedAfterItsCreationIsUsedAsWrapped() {
        List<String> calls = new ArrayList<>();
        web.withBean(BeanPostProcessor.class, () -> new Wrapping(calls)).run(context -> {
            assertThat(context.getBean(Idempotence.class).saveIfAbsent("one")).isTrue();
            assertThat(calls).contains("claim");
        });
    }

    private record Wrapping(List<String> calls) implements BeanPostProcessor {
        @Override
        public Object postProcessAfterInitialization(Object bean, String beanName) {
            if (!(bean instanceof IdempotenceStorage)) {
                return bean;
            }
            ProxyFactory wrapped = new ProxyFactory(bean);
            wrapped.addAdvice((MethodInterceptor) call -> {
                calls.add(call.getMethod().getName());
                return call.proceed();
            });
            return wrapped.getProxy();
        }
    }

    /** Spring evaluates such a condition when it reads the method, and nothing promises the order of methods. */
    @ParameterizedTest
    @ValueSource(classes = {IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    void noConditionAsksForABeanOfTheSameClass(Class<?> configuration) {
        Stream.concat(Stream.of(configuration), Stream.of(configuration.getDeclaredClasses()))
                .forEach(type -> {
                    List<Method> beans = Stream.of(type.getDeclaredMethods())
                            .filter(method -> method.isAnnotationPresent(Bean.class))
                            .toList();
                    for (Method bean : beans) {
                        ConditionalOnMissingBean condition = bean.getAnnotation(ConditionalOnMissingBean.class);
                        for (Class<?> missing : condition == null ? new Class<?>[0] : condition.value()) {
                            assertThat(beans)
                                    .filteredOn(other -> !other.equals(bean))
                                    .as("%s asks for %s", bean.getName(), missing.getSimpleName())
                                    .noneMatch(other -> missing.isAssignableFrom(other.getReturnType()));
                        }
                    }
                });
    }

    @Test
    void theApplicationsOwnRegistrationReplacesOurs() {
        web.withUserConfiguration(OwnRegistration.class)
                .run(context -> assertThat(context)
                        .hasSingleBean(FilterRegistrationBean.class)
                        .doesNotHaveBean(IdempotenceFilter.class)
                        .doesNotHaveBean(IdempotenceFilterRegistrationBean.class));
    }

    @Test
    void everyListenerGetsEveryEventWhateverAnotherOneThrows() {
        List<IdempotenceEvent> events = new ArrayList<>();
        web.withBean("bad", IdempotenceListener.class, () -> (event, id) -> {
                    throw new IllegalStateException("a bad listener");
                })
                .withBean("good", IdempotenceListener.class, () -> (event, id) -> events.add(event))
                .run(context -> context.getBean(Idempotence.class).saveIfAbsent("one"));
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED);
    }

    /** As of a metrics library of the wrong version. */
    @Test
    void anErrorOfAListenerKeepsNoEventFromTheOthers() {
        List<IdempotenceEvent> events = new ArrayList<>();
        web.withBean("bad", IdempotenceListener.class, () -> (event, id) -> {
                    throw new NoSuchMethodError("of a library");
                })
                .withBean("good", IdempotenceListener.class, () -> (event, id) -> events.add(event))
                .run(context -> context.getBean(Idempotence.class).saveIfAbsent("one"));
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED);
    }

    @Test
    void customizersComeAfterTheProperties() {
        List<Object> customized = new ArrayList<>();
        web.withBean(IdempotenceFilterCustomizer.class, () -> customized::add)
                .run(context -> assertThat(customized).hasSize(1));
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoRedis {
        @Bean
        @Primary
        RedisConnectionFactory first() {
            return new LettuceConnectionFactory("127.0.0.1", 1);
        }

        @Bean
        RedisConnectionFactory second() {
            return new LettuceConnectionFactory("127.0.0.1", 1);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class AwareDatabase {
        @Bean(destroyMethod = "dispose")
        JdbcConnectionPool pool() {
            return JdbcConnectionPool.create("jdbc:h2:mem:aware;DB_CLOSE_DELAY=-1", "sa", "");
        }

        @Bean
        @Primary
        DataSource aware(JdbcConnectionPool pool) {
            return new TransactionAwareDataSourceProxy(pool);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnRegistration {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> ownRegistration(Idempotence idempotence) {
            return new FilterRegistrationBean<>(
                    IdempotenceFilter.builder(idempotence).build());
        }
    }

    @Configuration
    static class OwnBeans {
        private IdempotenceFilter filter;

        @Bean
        IdempotenceStorage ownStorage() {
            return IdempotenceStorage.inMemory();
        }

        @Bean
        Idempotence ownIdempotence() {
            return Idempotence.over(ownStorage());
        }

        @Bean
        IdempotenceFilter ownFilter() {
            filter = IdempotenceFilter.builder(ownIdempotence()).build();
            return filter;
        }

        @Bean
        IdempotencePolicy ownPolicy() {
            return IdempotencePolicy.defaults();
        }

        @Bean
        IdempotenceFilterRegistrationBean ownRegistration() {
            IdempotenceFilterRegistrationBean registration =
                    new IdempotenceFilterRegistrationBean(ownFilter(), "/payments/*");
            registration.setOrder(7);
            return registration;
        }
    }
}
