package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.ResultCodec;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import okhttp3.OkHttpClient;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisClientConfig;

/** A null argument where none is allowed fails at once, in the public method. */
class NullsTest {
    private final List<String> silent = new ArrayList<>();

    private static Object anyOf(Class<?> type, Executable target) {
        IdempotenceId id = IdempotenceId.of("a");
        Map<Class<?>, Object> known = new LinkedHashMap<>();
        known.put(String.class, target.getDeclaringClass() == RedisIdempotenceStorage.class ? "a:1" : "a");
        known.put(URI.class, URI.create("redis://localhost:1"));
        known.put(Duration.class, Duration.ofSeconds(1));
        known.put(Clock.class, Clock.systemUTC());
        known.put(IdempotenceId.class, id);
        known.put(Class.class, RuntimeException.class);
        known.put(Idempotence.class, Idempotence.over(IdempotenceStorage.inMemory()));
        known.put(IdempotenceStorage.class, IdempotenceStorage.inMemory());
        known.put(IdempotencePolicy.class, IdempotencePolicy.defaults());
        known.put(IdempotentCall.class, IdempotentCall.of(id));
        known.put(IdempotenceClientConfig.class, IdempotenceClientConfig.defaults());
        known.put(Fingerprint.class, Fingerprint.NONE);
        known.put(Verdict.class, Verdict.KEEP);
        known.put(ConnectionPoolConfig.class, new ConnectionPoolConfig());
        known.put(JedisClientConfig.class, DefaultJedisClientConfig.builder().build());
        known.put(RetryRegistry.class, RetryRegistry.ofDefaults());
        known.put(Feign.Builder.class, Feign.builder());
        known.put(OkHttpClient.Builder.class, new OkHttpClient.Builder());
        known.put(int.class, target.getName().equals("status") ? 200 : 7);
        known.put(long.class, 1L << 20);
        known.put(double.class, 1.0);
        known.put(boolean.class, true);
        Object value = known.get(type);
        if (value != null) {
            return value;
        }
        if (type.isArray()) {
            return java.lang.reflect.Array.newInstance(type.getComponentType(), 0);
        }
        if (type.isEnum()) {
            return type.getEnumConstants()[0];
        }
        return type.isInterface()
                ? Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, args) -> null)
                : null;
    }

    private void check(Executable executable, Call call) {
        Class<?>[] types = executable.getParameterTypes();
        for (int i = 0; i < types.length; i++) {
            boolean allowed = executable.getAnnotatedParameterTypes()[i].isAnnotationPresent(Nullable.class);
            if (types[i].isPrimitive() || allowed) {
                continue;
            }
            Object[] args =
                    Arrays.stream(types).map(type -> anyOf(type, executable)).toArray();
            args[i] = null;
            try {
                call.with(args);
                silent.add(executable + ", parameter " + (i + 1) + ": taken");
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof NullPointerException)) {
                    silent.add(executable + ", parameter " + (i + 1) + ": " + e.getCause());
                }
            } catch (ReflectiveOperationException e) {
                throw new LinkageError(executable.toString(), e);
            }
        }
    }

    @FunctionalInterface
    private interface Call {
        void with(Object[] args) throws ReflectiveOperationException;
    }

    private void checkMethods(Class<?> type, @Nullable Object instance) {
        for (Method method : type.getDeclaredMethods()) {
            boolean isStatic = Modifier.isStatic(method.getModifiers());
            if (Modifier.isPublic(method.getModifiers())
                    && !method.isSynthetic()
                    // A servlet context refuses for reasons of its own.
                    && !method.getName().equals("install")
                    && isStatic == (instance == null)
                    && !method.getName().equals("equals")) {
                check(method, args -> method.invoke(instance, args));
            }
        }
    }

    @Test
    void factoriesRefuseNull() {
        for (Class<?> type : List.of(
                IdempotenceId.class,
                IdempotenceIdGenerator.class,
                IdempotencyKeyHeader.class,
                IdempotenceClientConfig.class,
                IdempotenceScope.class,
                Idempotence.class,
                IdempotencePolicy.class,
                ResultCodec.class,
                RedisIdempotenceStorage.class,
                JdbcIdempotenceStorage.class,
                IdempotenceFilter.class,
                IdempotenceStorage.class,
                StorageKey.class)) {
            checkMethods(type, null);
        }
        for (Class<?> type : List.of(IdempotenceId.class, IdempotentCall.class)) {
            for (var constructor : type.getConstructors()) {
                check(constructor, constructor::newInstance);
            }
        }
        for (Class<?> type : List.of(IdempotentFeign.class, IdempotentOkHttp.class)) {
            for (Method install : type.getMethods()) {
                if (install.getName().equals("install")) {
                    check(install, args -> install.invoke(null, args));
                }
            }
        }
        assertThat(silent).isEmpty();
    }

    @Test
    void buildersRefuseNull() {
        for (Object builder : List.of(
                IdempotenceClientConfig.builder(),
                IdempotencePolicy.builder(),
                Idempotence.builder(IdempotenceStorage.inMemory()),
                IdempotenceFilter.builder(Idempotence.over(IdempotenceStorage.inMemory())),
                RedisIdempotenceStorage.builder("localhost:1"),
                JdbcIdempotenceStorage.builder(new PGSimpleDataSource()))) {
            checkMethods(builder.getClass(), builder);
        }
        assertThat(silent).isEmpty();
    }

    @Test
    void theFacadeRefusesNull() {
        try (Idempotence idempotence = Idempotence.over(IdempotenceStorage.inMemory())) {
            checkMethods(Idempotence.class, idempotence);
        }
        assertThat(silent).isEmpty();
    }
}
