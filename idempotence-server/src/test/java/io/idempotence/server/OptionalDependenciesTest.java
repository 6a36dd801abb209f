package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisCommands;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.BodyComparison;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceStorage;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A service without optional dependencies. Each test runs with neither Jedis nor Gson on the class path. */
class OptionalDependenciesTest {
    @Test
    void recordsInADatabaseNeedNeitherJedisNorGson() throws Exception {
        assertThat(withoutJedisAndGson(InADatabase.class)).startsWith("Claimed");
    }

    @Test
    void recordsInRedisBehindAnotherDriverNeedNoJedis() throws Exception {
        assertThat(withoutJedisAndGson(BehindAnotherDriver.class)).startsWith("Claimed");
    }

    /** As frameworks do that look for annotations. */
    @Test
    void storagesBehindAnotherDriverCanBeLookedIntoWithoutJedis() throws Exception {
        assertThat(withoutJedisAndGson(LookedInto.class)).contains("claim");
    }

    @ParameterizedTest
    @ValueSource(classes = {ByAddress.class, ByUri.class})
    void connectingToRedisReportsThatJedisIsMissing(Class<? extends Supplier<String>> way) throws Exception {
        assertThat(withoutJedisAndGson(way))
                .isEqualTo("connections to Redis need redis.clients:jedis 6.0 or later; add it, or pass another driver"
                        + " to RedisIdempotenceStorage.over(...)");
    }

    @Test
    void comparingJsonReportsThatGsonIsMissing() throws Exception {
        assertThat(withoutJedisAndGson(ComparingJson.class))
                .isEqualTo(
                        "BodyComparison.canonicalJson() needs com.google.code.gson:gson 2.11 or later; add it, or use"
                                + " bytes()");
    }

    private static String withoutJedisAndGson(Class<? extends Supplier<String>> service) throws Exception {
        try (URLClassLoader loader = new URLClassLoader(classPath(), ClassLoader.getPlatformClassLoader())) {
            Constructor<?> constructor = loader.loadClass(service.getName()).getDeclaredConstructor();
            constructor.setAccessible(true);
            Supplier<?> there = (Supplier<?>) constructor.newInstance();
            return String.valueOf(there.get());
        }
    }

    private static URL[] classPath() throws IOException {
        List<Path> entries = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .map(Path::of)
                .filter(entry -> !entry.getFileName().toString().matches("(jedis|gson)-.*"))
                .toList();
        URL[] urls = new URL[entries.size()];
        for (int i = 0; i < urls.length; i++) {
            urls[i] = url(entries.get(i));
        }
        return urls;
    }

    private static URL url(Path entry) throws MalformedURLException {
        return entry.toUri().toURL();
    }

    private static String claimed(IdempotenceStorage storage) {
        return storage.claim(Claims.request(Claims.newKey())).toString();
    }

    private static String failure(Supplier<?> work) {
        try {
            return "no failure: " + work.get();
        } catch (IllegalStateException e) {
            return String.valueOf(e.getMessage());
        }
    }

    static final class InADatabase implements Supplier<String> {
        @Override
        public String get() {
            JdbcDataSource dataSource = new JdbcDataSource();
            dataSource.setURL("jdbc:h2:mem:without;DB_CLOSE_DELAY=-1");
            try (JdbcIdempotenceStorage storage =
                    JdbcIdempotenceStorage.builder(dataSource).createIfMissing().build()) {
                return claimed(storage);
            }
        }
    }

    static final class BehindAnotherDriver implements Supplier<String> {
        @Override
        public String get() {
            return claimed(RedisIdempotenceStorage.over(new FreeIds()));
        }
    }

    static final class LookedInto implements Supplier<String> {
        @Override
        public String get() {
            StringBuilder methods = new StringBuilder();
            for (Class<?> type = RedisIdempotenceStorage.over(new FreeIds()).getClass();
                    type != Object.class;
                    type = type.getSuperclass()) {
                Stream.of(type.getDeclaredMethods()).forEach(methods::append);
                Stream.of(type.getDeclaredConstructors()).forEach(methods::append);
                Stream.of(type.getDeclaredFields()).forEach(methods::append);
            }
            return methods.toString();
        }
    }

    static final class ByAddress implements Supplier<String> {
        @Override
        public String get() {
            return failure(() -> RedisIdempotenceStorage.connect("localhost:6379"));
        }
    }

    static final class ByUri implements Supplier<String> {
        @Override
        public String get() {
            return failure(() -> RedisIdempotenceStorage.connect(URI.create("redis://localhost")));
        }
    }

    static final class ComparingJson implements Supplier<String> {
        @Override
        public String get() {
            return failure(BodyComparison::canonicalJson);
        }
    }

    /** A stand-in for a Redis in which every ID is free and no script is cached. */
    static final class FreeIds implements RedisCommands {
        @Override
        public Object evalsha(byte[] sha1, byte[] key, byte[]... arguments) {
            throw new IllegalStateException(
                    "the driver failed", new IllegalStateException("NOSCRIPT No matching script"));
        }

        @Override
        public Object eval(byte[] script, byte[] key, byte[]... arguments) {
            return new String(script, StandardCharsets.US_ASCII).contains("'claimed'") ? List.of(1L) : 0L;
        }

        @Override
        public Page scan(String cursor, String pattern, int count) {
            return new Page("0", List.of());
        }
    }
}
