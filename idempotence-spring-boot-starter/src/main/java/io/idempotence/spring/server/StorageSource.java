package io.idempotence.spring.server;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.util.ClassUtils;
import redis.clients.jedis.UnifiedJedis;

/**
 * A kind of storage that uses a bean of the application.
 *
 * @param kind the value of {@code idempotence.server.storage}
 * @param type the class of the bean
 * @param open makes the storage
 */
record StorageSource<T>(Storage kind, Class<T> type, ListableBeanFactory beans, Function<T, IdempotenceStorage> open) {
    /** The sources that this application may have, in the order of preference. */
    static List<StorageSource<?>> all(
            IdempotenceServerProperties properties,
            ConfigurableListableBeanFactory beans,
            ObjectProvider<StorageSource<DataSource>> database) {
        List<StorageSource<?>> all = new ArrayList<>();
        ClassLoader classes = beans.getBeanClassLoader();
        if (ClassUtils.isPresent("org.springframework.data.redis.connection.RedisConnectionFactory", classes)) {
            all.add(new StorageSource<>(
                    Storage.REDIS, RedisConnectionFactory.class, beans, new ServerBuilder(properties)::redis));
        }
        if (ClassUtils.isPresent("redis.clients.jedis.UnifiedJedis", classes)) {
            all.add(new StorageSource<>(Storage.JEDIS, UnifiedJedis.class, beans, RedisIdempotenceStorage::using));
        }
        if (properties.storage() == Storage.JDBC) {
            all.add(database.getObject());
        }
        return all;
    }

    List<String> names() {
        return List.of(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, type));
    }

    /** Returns the storage, or null if the application has no such bean. */
    @Nullable
    ChosenStorage find(String why) {
        T bean;
        try {
            bean = beans.getBeanProvider(type).getIfAvailable();
        } catch (NoUniqueBeanDefinitionException e) {
            throw SetUpException.of(
                    "The records of the idempotence framework need one " + type.getSimpleName()
                            + ", and the application has several: " + String.join(", ", names()) + ".",
                    "Set idempotence.server.storage-bean to the name of one of them, or mark one as @Primary.",
                    e);
        }
        if (bean == null) {
            return null;
        }
        List<String> names = names();
        return chosen(bean, names.size() == 1 ? "'" + names.get(0) + "'" : "that is primary", why);
    }

    ChosenStorage named(String name) {
        return chosen(beans.getBean(name, type), "'" + name + "'", "as idempotence.server.storage-bean says");
    }

    private ChosenStorage chosen(T bean, String which, String why) {
        return new ChosenStorage(
                open.apply(bean),
                IdempotenceServerProperties.text(kind),
                "the " + type.getSimpleName() + " " + which + ", " + why);
    }
}
