package io.idempotence.server.redis;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import redis.embedded.core.ExecutableProvider;

/**
 * A redis-server that comes as a Maven artifact. Tests use 6.2 unless the system property {@code idempotence.test.redis} says {@code 7.0}, and a
 * binary of the machine if {@code idempotence.test.redis-server} names one.
 */
enum RedisBinary {
    VERSION_6_2 {
        @Override
        File unpack() throws IOException {
            return ExecutableProvider.newJarResourceProvider().get();
        }
    },
    /** Statically linked, with TLS. */
    VERSION_7_0 {
        @Override
        File unpack() throws IOException {
            String system = System.getProperty("os.name").startsWith("Mac") ? "darwin" : "linux";
            String processor = System.getProperty("os.arch").equals("aarch64") ? "arm64" : "amd64";
            Path file = Files.createTempFile("redis-server-7.0", "");
            try (InputStream binary =
                    RedisBinary.class.getResourceAsStream("/redis-server-7.0.15-" + system + "-" + processor)) {
                Files.copy(binary, file, StandardCopyOption.REPLACE_EXISTING);
            }
            if (!file.toFile().setExecutable(true)) {
                throw new IOException(file + " cannot be made executable");
            }
            return file.toFile();
        }
    };

    private String path;

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

    abstract File unpack() throws IOException;

    /** Where it is, unpacked once per JVM. */
    synchronized String path() {
        if (path == null) {
            try {
                File file = unpack();
                file.deleteOnExit();
                path = file.getAbsolutePath();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return path;
    }
}
