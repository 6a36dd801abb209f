package io.idempotence.spring.server;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import java.util.List;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.env.Environment;
import org.springframework.core.env.Profiles;

/** The choice of the storage among what the application has: Redis through Spring Data, a Jedis client, a database, memory. */
final class StorageChoice {
    private static final Logger LOG = LoggerFactory.getLogger(StorageChoice.class);

    private final IdempotenceServerProperties properties;
    private final List<StorageSource<?>> sources;
    private final Environment environment;

    StorageChoice(IdempotenceServerProperties properties, List<StorageSource<?>> sources, Environment environment) {
        this.properties = properties;
        this.sources = sources;
        this.environment = environment;
    }

    /** @throws SetUpException if the storage cannot be chosen */
    ChosenStorage choose() {
        String name = properties.storageBean();
        if (name != null) {
            return named(name);
        }
        return switch (properties.storage()) {
            case AUTO -> first();
            case MEMORY -> memory("as set by idempotence.server.storage");
            case REDIS ->
                required(
                        Storage.REDIS,
                        "RedisConnectionFactory",
                        "Add spring-boot-starter-data-redis, or choose another storage.");
            case JEDIS ->
                required(
                        Storage.JEDIS,
                        "Jedis client (UnifiedJedis)",
                        "Declare a bean of redis.clients.jedis.UnifiedJedis, or choose another storage.");
            case JDBC ->
                required(
                        Storage.JDBC,
                        "DataSource",
                        "Add spring-boot-starter-jdbc and set spring.datasource.url, or choose another storage.");
        };
    }

    private ChosenStorage first() {
        for (StorageSource<?> source : sources) {
            if (source.kind() != Storage.JDBC) {
                ChosenStorage found = source.find("chosen automatically");
                if (found != null) {
                    return found;
                }
            }
        }
        return memory("because this application has no RedisConnectionFactory and no Jedis client");
    }

    private ChosenStorage required(Storage kind, String what, String action) {
        for (StorageSource<?> source : sources) {
            if (source.kind() == kind) {
                ChosenStorage found = source.find("as set by idempotence.server.storage");
                if (found != null) {
                    return found;
                }
            }
        }
        throw SetUpException.of(
                "The property idempotence.server.storage has the value '" + IdempotenceServerProperties.text(kind)
                        + "', but the application has no bean of a " + what + ".",
                action);
    }

    private ChosenStorage named(String name) {
        Storage wanted = properties.storage();
        List<StorageSource<?>> possible = sources.stream()
                .filter(source -> wanted == source.kind() || (wanted == Storage.AUTO && source.kind() != Storage.JDBC))
                .toList();
        for (StorageSource<?> source : possible) {
            if (source.names().contains(name)) {
                return source.named(name);
            }
        }
        List<String> names =
                possible.stream().flatMap(source -> source.names().stream()).toList();
        throw SetUpException.of(
                "The property idempotence.server.storage-bean has the value '" + name + "', but "
                        + (names.isEmpty()
                                ? "the application has no bean that fits idempotence.server.storage."
                                : "the beans that fit idempotence.server.storage are: " + String.join(", ", names)
                                        + "."),
                wanted == Storage.AUTO
                        ? "Name one of the beans. For a DataSource, set idempotence.server.storage to jdbc, too."
                        : "Name one of the beans, or change idempotence.server.storage.");
    }

    private ChosenStorage memory(String why) {
        List<String> forbidden = Objects.requireNonNullElse(properties.memory().forbiddenProfiles(), List.<String>of());
        List<String> active = forbidden.stream()
                .filter(profile -> environment.acceptsProfiles(Profiles.of(profile)))
                .toList();
        if (!active.isEmpty()) {
            throw SetUpException.of(
                    "The idempotence framework would keep its records in memory, " + why + ". The profile '"
                            + active.get(0) + "' is active, in which that is forbidden: after a restart, or in another"
                            + " instance, a retry would run again.",
                    "Give the application a Redis (spring-boot-starter-data-redis) or set idempotence.server.storage to"
                            + " jdbc. If it protects neither handlers nor bean methods, set idempotence.server.enabled to false. If it may forget"
                            + " its IDs, change idempotence.server.memory.forbidden-profiles.");
        }
        LOG.warn(
                "IDEMPOTENCE RECORDS ARE KEPT IN MEMORY, {}. After a restart, and in every other instance, a retry runs"
                        + " again. Use Redis (spring-boot-starter-data-redis) or idempotence.server.storage=jdbc in production.",
                why);
        return new ChosenStorage(IdempotenceStorage.inMemory(), "memory", "memory, " + why);
    }
}
