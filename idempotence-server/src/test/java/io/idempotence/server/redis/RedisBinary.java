package io.idempotence.server.redis;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import redis.embedded.core.ExecutableProvider;
import redis.embedded.model.OsArchitecture;

/**
 * A redis-server that comes as a Maven artifact. Tests use 6.2 unless the system property {@code idempotence.test.redis} says
 * {@code 7.0}, and a binary of the machine if {@code idempotence.test.redis-server} names one.
 */
enum RedisBinary {
    VERSION_6_2(ExecutableProvider.newJarResourceProvider()),
    /** Statically linked, with TLS. */
    VERSION_7_0(ExecutableProvider.newJarResourceProvider(Map.of(
            OsArchitecture.UNIX_x86_64, "/redis-server-7.0.15-linux-amd64",
            OsArchitecture.UNIX_AARCH64, "/redis-server-7.0.15-linux-arm64",
            OsArchitecture.MAC_OS_X_x86_64, "/redis-server-7.0.15-darwin-amd64",
            OsArchitecture.MAC_OS_X_ARM64, "/redis-server-7.0.15-darwin-arm64")));

    private final ExecutableProvider provider;
    private String path;

    RedisBinary(ExecutableProvider provider) {
        this.provider = provider;
    }

    /** The version that this run is about, as in {@code 6.2}. */
    static String version() {
        return System.getProperty("idempotence.test.redis", "6.2");
    }

    /** The binary that this run is about. */
    static String chosen() {
        return isOfTheMachine()
                ? System.getProperty("idempotence.test.redis-server")
                : valueOf("VERSION_" + version().replace('.', '_')).path();
    }

    static boolean isOfTheMachine() {
        return !System.getProperty("idempotence.test.redis-server", "").isEmpty();
    }

    /** Where it is, unpacked once per JVM. */
    synchronized String path() {
        if (path == null) {
            try {
                File file = provider.get();
                file.deleteOnExit();
                path = file.getAbsolutePath();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return path;
    }
}
