package io.idempotence.spring.client;

import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.metrics.IdempotenceClientMetrics;
import io.idempotence.spring.internal.SpringDurations;
import io.idempotence.spring.internal.Switches;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.cloud.client.circuitbreaker.CircuitBreakerFactory;
import org.springframework.cloud.openfeign.CircuitBreakerNameResolver;
import org.springframework.cloud.openfeign.FeignBuilderCustomizer;
import org.springframework.cloud.openfeign.clientconfig.HttpClient5FeignConfiguration.HttpClientBuilderCustomizer;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.client.RestClient;

/**
 * The auto-configuration of the client half: the settings {@code idempotence.client.*}, every Feign client and HTTP service client of the
 * application, and calls of {@code RestClient} and {@code RestTemplate} that ask for it: see {@link IdempotentRestClient}.
 *
 * <p>A bean of {@link RetryRegistry} or {@link IdempotenceIdGenerator} is used, of several the primary one, and every bean of {@link
 * IdempotenceClientListener}. A bean of {@link IdempotenceClientConfig} replaces all settings. {@code idempotence.client.enabled=false}
 * switches everything off, except for clients that {@code idempotence.client.clients.<name>.enabled=true} enables.
 */
@AutoConfiguration(
        afterName = {
            "io.github.resilience4j.springboot3.retry.autoconfigure.RetryAutoConfiguration",
            "io.github.resilience4j.springboot4.retry.autoconfigure.RetryAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.cloud.circuitbreaker.resilience4j.Resilience4JAutoConfiguration",
            "org.springframework.cloud.openfeign.FeignAutoConfiguration"
        })
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@Conditional(IdempotenceClientAutoConfiguration.OnClientEnabled.class)
public class IdempotenceClientAutoConfiguration {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceClientAutoConfiguration.class);

    @Bean
    @ConditionalOnMissingBean
    IdempotenceClientConfig idempotenceClientConfig(
            ConfigurableEnvironment environment,
            ListableBeanFactory beanFactory,
            ObjectProvider<IdempotenceClientListener> listeners) {
        IdempotenceClientConfigBuilder builder = IdempotenceClientConfig.builder();
        EnvironmentSettings.copy(environment, builder);
        one(RetryRegistry.class, beanFactory).ifPresent(builder::retryRegistry);
        one(IdempotenceIdGenerator.class, beanFactory).ifPresent(builder::generator);
        Supplier<List<IdempotenceClientListener>> beans =
                SingletonSupplier.of(() -> listeners.orderedStream().toList());
        IdempotenceClientConfig config =
                builder.listener(new ClientListeners(beans)).build();
        LOG.info(
                "{} carry an idempotence ID on {} and are retried: deadline {}, {} attempts. Switch this off for providers that"
                        + " ignore the Idempotency-Key: idempotence.client.clients.<name>.enabled=false",
                config.enabled() ? "Feign clients and HTTP service clients" : "HTTP clients that are enabled by name",
                new TreeSet<>(config.methods()),
                SpringDurations.text(config.deadline()),
                config.maxAttempts());
        return config;
    }

    /** The only bean of a type, or the primary one. Without a primary one, none of several is used. */
    private static <T> Optional<T> one(Class<T> type, ListableBeanFactory beans) {
        T one = beans.getBeanProvider(type).getIfUnique();
        if (one == null) {
            String[] names = BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, type);
            if (names.length > 1) {
                LOG.warn(
                        "None of the beans {} of type {} is used for calls with idempotence IDs. Mark the right one with @Primary",
                        Arrays.toString(names),
                        type.getSimpleName());
            }
        }
        return Optional.ofNullable(one);
    }

    /** The meters of calls and attempts. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    @ConditionalOnBean(MeterRegistry.class)
    static class ClientMeters {
        @Bean
        @ConditionalOnMissingBean
        IdempotenceClientMetrics idempotenceClientMetrics(MeterRegistry registry) {
            return IdempotenceClientMetrics.of(registry);
        }
    }

    /** {@code RestClient}, HTTP service clients and {@code RestTemplate}. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(RestClient.class)
    static class RestClients {
        @Bean
        static ClientBeans idempotenceClientBeans(ObjectProvider<RestClientInstaller> installer) {
            return new ClientBeans(installer);
        }

        @Bean
        RestClientInstaller idempotenceRestClientInstaller(IdempotenceClientConfig config, Environment environment) {
            return new RestClientInstaller(config, environment);
        }

        /** HTTP service groups exist from Spring 7 on. */
        @Bean
        @ConditionalOnClass(name = HttpServiceGroups.CONFIGURER)
        static HttpServiceGroups idempotenceHttpServiceGroups(ApplicationContext context) {
            return new HttpServiceGroups(Objects.requireNonNull(context.getClassLoader(), "class loader"));
        }
    }

    /** The clients of Spring Cloud OpenFeign. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(FeignBuilderCustomizer.class)
    static class OpenFeign {
        @Bean
        FeignBuilderCustomizer idempotenceFeignBuilderCustomizer(
                IdempotenceClientConfig config, ObjectProvider<TimeLimits> limits) {
            return new FeignInstaller(config, limits.getIfAvailable());
        }

        /** Of the circuit breakers around them. */
        @Bean
        @ConditionalOnBean({CircuitBreakerNameResolver.class, CircuitBreakerFactory.class})
        TimeLimits idempotenceTimeLimits(
                IdempotenceClientConfig config,
                CircuitBreakerFactory<?, ?> breakers,
                CircuitBreakerNameResolver names,
                Environment environment) {
            return new TimeLimits(
                    config,
                    breakers,
                    names,
                    environment.getProperty(
                            "spring.cloud.openfeign.circuitbreaker.group.enabled", Boolean.class, false));
        }
    }

    /** The Apache HttpClient of Spring Cloud OpenFeign. A client that is a bean of the application is not customized. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HttpClientBuilderCustomizer.class, HttpClientBuilder.class})
    static class OpenFeignHttpClient {
        /** The first one, so that the application's own can set another strategy. */
        @Bean
        @Order(Ordered.HIGHEST_PRECEDENCE)
        HttpClientBuilderCustomizer idempotenceHttpClientBuilderCustomizer() {
            return builder -> builder.setRetryStrategy(new RetriesWithoutId());
        }
    }

    /** The condition that {@code idempotence.client.enabled} is not false, or that a client is enabled by settings of its own. */
    static final class OnClientEnabled extends SpringBootCondition {
        @Override
        public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
            ConditionMessage.Builder message = ConditionMessage.forCondition("idempotence.client.enabled");
            String enabled = context.getEnvironment().getProperty("idempotence.client.enabled", "");
            // A value that cannot be read is reported with the other settings.
            boolean all = Switches.value(enabled).orElse(true);
            if (all) {
                return ConditionOutcome.match(message.because("clients are enabled"));
            }
            return context.getEnvironment() instanceof ConfigurableEnvironment environment
                            && EnvironmentSettings.enableOneClient(environment)
                    ? ConditionOutcome.match(message.because("some clients are enabled"))
                    : ConditionOutcome.noMatch(message.because("no client is enabled"));
        }
    }
}
