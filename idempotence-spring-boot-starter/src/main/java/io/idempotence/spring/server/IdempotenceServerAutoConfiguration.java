package io.idempotence.spring.server;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.metrics.IdempotenceMetrics;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.ConditionalOnSwitch;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import io.micrometer.core.instrument.MeterRegistry;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;
import javax.sql.DataSource;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.web.context.WebApplicationContext;

/**
 * The auto-configuration of the server half: an {@link Idempotence} over a storage, and in a servlet application the filter.
 *
 * <p>It applies unless {@code idempotence.server.enabled} is false. Its properties are {@code idempotence.server.*}, see {@link
 * IdempotenceServerProperties}. A wrong property, or a storage that cannot be used, fails the start. A storage that does not respond yet
 * does not.
 *
 * <p>Beans, each replaced by a bean of the application with the same type:
 *
 * <ul>
 *   <li>{@link IdempotencePolicy}, from {@code idempotence.server.policy.*}.
 *   <li>{@link IdempotenceStorage}, from what the application has: its {@code RedisConnectionFactory}, its Jedis client, its {@code
 *       DataSource} if {@code idempotence.server.storage} is {@code jdbc}, else memory. Made when something asks for it.
 *   <li>{@link Idempotence}, over the storage, with every bean of {@link IdempotenceListener}.
 *   <li>{@link IdempotenceMetrics}, if there is a {@code MeterRegistry}.
 *   <li>{@link IdempotenceFilter}, changed by every bean of {@link IdempotenceFilterCustomizer}, and its {@link
 *       IdempotenceFilterRegistrationBean}. Neither exists if the application registers a filter of this type itself.
 * </ul>
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration"
        })
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnSwitch("idempotence.server.enabled")
@EnableConfigurationProperties(IdempotenceServerProperties.class)
public class IdempotenceServerAutoConfiguration {
    @Bean
    static ServerStart idempotenceServerStart(DefaultListableBeanFactory beans) {
        return new ServerStart(beans);
    }

    @Bean
    @ConditionalOnMissingBean
    IdempotencePolicy idempotencePolicy(IdempotenceServerProperties properties) {
        return new ServerBuilder(properties).policy();
    }

    @Bean
    static ServerShutdown idempotenceServerShutdown(ConfigurableApplicationContext context, ServerStart start) {
        return new ServerShutdown(context, start);
    }

    @Bean
    static IgnoredStorageCheck idempotenceIgnoredStorageCheck(ConfigurableListableBeanFactory beans) {
        return new IgnoredStorageCheck(beans);
    }

    /** Meters, where the application has a registry. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    @ConditionalOnBean(MeterRegistry.class)
    static class ServerMeters {
        @Bean
        @ConditionalOnMissingBean
        IdempotenceMetrics idempotenceMetrics(MeterRegistry registry) {
            return IdempotenceMetrics.of(registry);
        }
    }

    /** The storage, unless the application declares its own. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(IdempotenceStorage.class)
    static class DefaultStorage {
        @Bean
        @Lazy
        ChosenStorage idempotenceChosenStorage(
                IdempotenceServerProperties properties,
                ConfigurableListableBeanFactory beans,
                ObjectProvider<StorageSource<DataSource>> database,
                Environment environment) {
            return new StorageChoice(properties, StorageSource.all(properties, beans, database), environment).choose();
        }

        @Bean
        @Lazy
        IdempotenceStorage idempotenceStorage(ChosenStorage chosen) {
            return chosen.storage();
        }

        /** A bean, because only the methods of beans can run after the migrations of the database. */
        @Bean
        @Lazy
        @DependsOnDatabaseInitialization
        StorageSource<DataSource> idempotenceDatabaseSource(
                ListableBeanFactory beans, IdempotenceServerProperties properties) {
            return new StorageSource<>(
                    Storage.JDBC,
                    DataSource.class,
                    beans,
                    dataSource -> new ServerBuilder(properties).jdbc(dataSource).build());
        }
    }

    /** The server half over the storage, unless the application builds its own. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(Idempotence.class)
    static class DefaultIdempotence {
        @Bean
        @Lazy
        StorageHealth idempotenceStorageHealth(ServerStart start) {
            return new StorageHealth(start);
        }

        @Bean
        @Lazy
        Idempotence idempotence(
                IdempotenceServerProperties properties,
                ObjectProvider<IdempotenceStorage> storages,
                ObjectProvider<ChosenStorage> choice,
                ObjectProvider<IdempotencePolicy> policies,
                ObjectProvider<IdempotenceListener> listeners,
                Environment environment,
                ServerStart start) {
            IdempotenceStorage storage = one(storages, IdempotenceStorage.class);
            ChosenStorage chosen = choice.getIfAvailable();
            requireDatabaseForMarks(properties, chosen == null);
            ServerParts parts = new ServerParts(
                    chosen == null ? applications(storage, properties) : chosen.as(storage),
                    Namespace.of(properties.namespace(), environment));
            Idempotence.Builder idempotence =
                    new ServerBuilder(properties).idempotence(parts).policy(one(policies, IdempotencePolicy.class));
            List<IdempotenceListener> all = listeners.orderedStream().toList();
            if (!all.isEmpty()) {
                idempotence.listener(new Listeners(all));
            }
            start.begin(parts);
            return idempotence.build();
        }

        private static <T> T one(ObjectProvider<T> beans, Class<T> type) {
            try {
                return beans.getObject();
            } catch (NoUniqueBeanDefinitionException e) {
                throw SetUpException.of(
                        "The application declares several beans of " + type.getSimpleName() + ": "
                                + String.join(", ", new TreeSet<>(Objects.requireNonNull(e.getBeanNamesFound()))) + ".",
                        "Keep one, mark one as @Primary, or declare your own bean of Idempotence.",
                        e);
            }
        }

        private static void requireDatabaseForMarks(IdempotenceServerProperties properties, boolean hasOwnBean) {
            if (!properties.jdbc().inTransaction() || properties.storage() == Storage.JDBC) {
                return;
            }
            String property = "idempotence.server.jdbc.in-transaction";
            if (hasOwnBean) {
                throw SetUpException.ofProperty(
                        property,
                        true,
                        "it does not change the application's own bean of IdempotenceStorage",
                        "Remove the property, and call inTransaction() in the builder of the bean.",
                        null);
            }
            throw SetUpException.ofProperty(
                    property,
                    true,
                    "the records are not in a database, so nothing would set marks, and a crash would leave the outcome unknown",
                    "Set idempotence.server.storage to jdbc, or remove the property.",
                    null);
        }

        private static ChosenStorage applications(IdempotenceStorage storage, IdempotenceServerProperties properties) {
            if (properties.storage() != Storage.AUTO || properties.storageBean() != null) {
                throw SetUpException.of(
                        "The application declares its own bean of IdempotenceStorage, and idempotence.server.storage"
                                + (properties.storageBean() == null ? "" : "-bean") + " chooses another storage.",
                        "Remove the bean, or remove the property.");
            }
            String name = storage.getClass().getSimpleName();
            return new ChosenStorage(storage, name, "the application's own " + name);
        }
    }

    /** The check of all filters of a servlet application. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(FilterRegistrationBean.class)
    static class Servlet {
        @Bean
        static FilterOrderCheck idempotenceFilterOrderCheck(ListableBeanFactory beans) {
            return new FilterOrderCheck(beans);
        }
    }

    /** The filter of a servlet application, unless it registers its own. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(FilterRegistrationBean.class)
    @Conditional(NoFilterRegistration.class)
    static class DefaultFilter {
        @Bean
        @ConditionalOnMissingBean
        IdempotenceFilter idempotenceFilter(
                Idempotence idempotence,
                IdempotenceServerProperties properties,
                ObjectProvider<IdempotenceFilterCustomizer> customizers,
                WebApplicationContext context) {
            ContainerFormLimits limits = ContainerFormLimits.of(context.getServletContext(), context.getEnvironment());
            IdempotenceFilterBuilder filter = new FilterBuilder(properties, limits).of(idempotence);
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
                            return ServerBuilder.checked(
                                    "paths", properties.paths(), () -> super.addRegistration(description, context));
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
