package io.idempotence.spring.server;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.metrics.IdempotenceMetrics;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import io.micrometer.core.instrument.MeterRegistry;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;
import javax.sql.DataSource;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.util.ClassUtils;
import redis.clients.jedis.UnifiedJedis;

/**
 * Auto-configuration of the provider half: storage, {@link Idempotence}, and in a servlet application the filter. Each bean backs off when
 * the application declares its own.
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration"
        })
@ConditionalOnProperty(prefix = IdempotenceServerProperties.PREFIX, name = "enabled", matchIfMissing = true)
@EnableConfigurationProperties(IdempotenceServerProperties.class)
public class IdempotenceServerAutoConfiguration {
    @Bean
    static ServerStart idempotenceServerStart() {
        return new ServerStart();
    }

    @Bean
    @ConditionalOnMissingBean
    IdempotencePolicy idempotencePolicy(IdempotenceServerProperties properties) {
        return new ServerBuilder(properties).policy();
    }

    @Bean
    static ServerShutdown idempotenceServerShutdown(ConfigurableApplicationContext context) {
        return new ServerShutdown(context);
    }

    /** The storage, unless the application declares its own. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(IdempotenceStorage.class)
    static class StorageOfTheApplication {
        @Bean
        @Lazy
        ChosenStorage idempotenceChosenStorage(
                IdempotenceServerProperties properties,
                ObjectProvider<StorageSource<?>> sources,
                Environment environment) {
            return new StorageChoice(properties, sources.orderedStream().toList(), environment).choose();
        }

        @Bean
        @Lazy
        IdempotenceStorage idempotenceStorage(ChosenStorage chosen) {
            return chosen.storage();
        }

        @Configuration(proxyBeanMethods = false)
        @ConditionalOnClass(RedisConnectionFactory.class)
        static class SpringDataRedis {
            @Bean
            @Order(1)
            StorageSource<RedisConnectionFactory> idempotenceSpringDataRedisSource(
                    ListableBeanFactory beans, IdempotenceServerProperties properties) {
                return new StorageSource<>(
                        Storage.REDIS,
                        RedisConnectionFactory.class,
                        beans,
                        connections -> new ServerBuilder(properties).redis(connections));
            }
        }

        @Configuration(proxyBeanMethods = false)
        @ConditionalOnClass(UnifiedJedis.class)
        static class JedisClient {
            @Bean
            @Order(2)
            StorageSource<UnifiedJedis> idempotenceJedisSource(ListableBeanFactory beans) {
                return new StorageSource<>(Storage.JEDIS, UnifiedJedis.class, beans, RedisIdempotenceStorage::using);
            }
        }

        @Configuration(proxyBeanMethods = false)
        @ConditionalOnProperty(prefix = IdempotenceServerProperties.PREFIX, name = "storage", havingValue = "jdbc")
        static class Database {
            @Bean
            @Order(3)
            @DependsOnDatabaseInitialization
            StorageSource<DataSource> idempotenceDatabaseSource(
                    ListableBeanFactory beans, IdempotenceServerProperties properties) {
                return new StorageSource<>(
                        Storage.JDBC,
                        DataSource.class,
                        beans,
                        dataSource -> new ServerBuilder(properties)
                                .jdbc(withoutTransactions(dataSource))
                                .build());
            }

            /** Records must survive the rollback of a business transaction. */
            private static DataSource withoutTransactions(DataSource dataSource) {
                if (!ClassUtils.isPresent(
                        "org.springframework.jdbc.datasource.DelegatingDataSource",
                        IdempotenceServerAutoConfiguration.class.getClassLoader())) {
                    return dataSource;
                }
                DataSource pool = dataSource;
                for (DataSource next = dataSource; next instanceof DelegatingDataSource wrapper; ) {
                    next = wrapper.getTargetDataSource();
                    if (wrapper instanceof TransactionAwareDataSourceProxy && next != null) {
                        pool = next;
                    }
                }
                return pool;
            }
        }
    }

    /** The {@link Idempotence} and its health, unless the application declares its own. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(Idempotence.class)
    static class Decisions {
        @Bean
        @Lazy
        ServerParts idempotenceServerParts(
                IdempotenceServerProperties properties,
                ObjectProvider<IdempotenceStorage> storages,
                ObjectProvider<ChosenStorage> choice,
                Environment environment) {
            IdempotenceStorage storage = one(storages, IdempotenceStorage.class);
            ChosenStorage chosen =
                    Optional.ofNullable(choice.getIfAvailable()).orElseGet(() -> applications(storage, properties));
            return new ServerParts(chosen, Namespace.of(properties.namespace(), environment));
        }

        @Bean
        @Lazy
        Idempotence idempotence(
                ServerParts parts,
                IdempotenceServerProperties properties,
                ObjectProvider<IdempotencePolicy> policies,
                ObjectProvider<IdempotenceListener> listeners,
                ServerStart start) {
            Idempotence.Builder idempotence =
                    new ServerBuilder(properties).idempotence(parts).policy(one(policies, IdempotencePolicy.class));
            List<IdempotenceListener> all = listeners.orderedStream().toList();
            if (!all.isEmpty()) {
                idempotence.listener(new Listeners(all));
            }
            start.begin(parts);
            return idempotence.build();
        }

        @Bean
        StorageHealth idempotenceStorageHealth(ServerStart start) {
            return new StorageHealth(start);
        }

        private static <T> T one(ObjectProvider<T> beans, Class<T> type) {
            try {
                return beans.getObject();
            } catch (NoUniqueBeanDefinitionException e) {
                throw ServerSetUpException.of(
                        "The application declares several beans of " + type.getSimpleName() + ": "
                                + String.join(", ", new TreeSet<>(Objects.requireNonNull(e.getBeanNamesFound()))) + ".",
                        "Keep one, mark one as @Primary, or declare your own bean of Idempotence.",
                        e);
            }
        }

        private static ChosenStorage applications(IdempotenceStorage storage, IdempotenceServerProperties properties) {
            if (properties.storage() != Storage.AUTO || properties.storageBean() != null) {
                throw ServerSetUpException.of(
                        "The application declares its own bean of IdempotenceStorage, and idempotence.server.storage"
                                + (properties.storageBean() == null ? "" : "-bean") + " chooses another storage.",
                        "Remove the bean, or remove the property.");
            }
            String name = storage.getClass().getSimpleName();
            return new ChosenStorage(storage, name, "the application's own " + name);
        }
    }

    /** Meters, where the application has a registry. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    @ConditionalOnBean(MeterRegistry.class)
    static class Metrics {
        @Bean
        @ConditionalOnMissingBean
        IdempotenceMetrics idempotenceMetrics(MeterRegistry registry) {
            return IdempotenceMetrics.of(registry);
        }
    }

    /** The filters of a servlet application, whoever registers them. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(FilterRegistrationBean.class)
    static class Servlet {
        @Bean
        static FilterOrderCheck idempotenceFilterOrderCheck(ListableBeanFactory beans) {
            return new FilterOrderCheck(beans);
        }
    }

    /** The filter, unless the application registers its own. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(FilterRegistrationBean.class)
    @Conditional(NoFilterRegistration.class)
    static class FilterOfTheApplication {
        @Bean
        @ConditionalOnMissingBean
        IdempotenceFilter idempotenceFilter(
                Idempotence idempotence,
                IdempotenceServerProperties properties,
                ObjectProvider<IdempotenceFilterCustomizer> customizers) {
            IdempotenceFilterBuilder filter = new FilterBuilder(properties).of(idempotence);
            customizers.orderedStream().forEach(customizer -> customizer.customize(filter));
            return filter.build();
        }

        @Bean
        IdempotenceFilterRegistrationBean idempotenceFilterRegistration(
                IdempotenceFilter filter, IdempotenceServerProperties properties, ServerStart start) {
            IdempotenceFilterRegistrationBean registration =
                    new IdempotenceFilterRegistrationBean(
                            filter, properties.paths().toArray(String[]::new)) {
                        @Override
                        protected FilterRegistration.Dynamic addRegistration(
                                String description, ServletContext context) {
                            FilterRegistration.Dynamic[] added = new FilterRegistration.Dynamic[1];
                            ServerBuilder.set(
                                    "paths",
                                    properties.paths(),
                                    paths -> added[0] = super.addRegistration(description, context));
                            return added[0];
                        }
                    };
            if (properties.filterOrder() != null) {
                registration.setOrder(properties.filterOrder());
            }
            start.describeFilter("filter on " + String.join(", ", registration.getUrlPatterns())
                    + (properties.requireId() ? ", an ID is required" : ", an ID is optional"));
            return registration;
        }
    }
}
