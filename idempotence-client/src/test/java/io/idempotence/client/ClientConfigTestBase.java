package io.idempotence.client;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.io.TempDir;

/** The base of tests that load settings of the client from a file, system properties and environment variables. */
abstract class ClientConfigTestBase {
    @TempDir
    Path directory;

    final IdempotenceClientConfig load(String file, Map<String, String> system, Map<String, String> environment) {
        Properties properties = new Properties();
        properties.putAll(system);
        try {
            Files.writeString(directory.resolve("idempotence.properties"), file);
            try (URLClassLoader classes =
                    new URLClassLoader(new URL[] {directory.toUri().toURL()}, null)) {
                return IdempotenceClientConfig.load(classes, properties, environment);
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    final IdempotenceClientConfig file(String file) {
        return load(file, Map.of(), Map.of());
    }
}
