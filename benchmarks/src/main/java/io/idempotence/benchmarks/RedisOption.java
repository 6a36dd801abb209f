package io.idempotence.benchmarks;

import java.io.IOException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The choice of the Redis server that is measured. */
final class RedisOption {
    @Option(
            names = "--redis-server",
            description = "a redis-server of this machine instead of that of a Maven artifact")
    private @Nullable Path binary;

    /** Starts it: 6.2 unless another is asked for. */
    Redis start() throws IOException {
        Path asked = binary;
        return Redis.start(asked == null ? Redis.VERSION_6 : asked::toFile);
    }
}
