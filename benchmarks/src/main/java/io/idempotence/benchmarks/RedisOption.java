package io.idempotence.benchmarks;

import java.io.IOException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Which Redis server is measured. */
final class RedisOption {
    @Option(
            names = "--redis-server",
            description = "a redis-server of this machine instead of the Maven artifact's 6.2")
    private @Nullable Path binary;

    Redis start() throws IOException {
        return Redis.start(binary);
    }
}
