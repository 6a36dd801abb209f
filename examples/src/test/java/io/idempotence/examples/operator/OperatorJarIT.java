package io.idempotence.examples.operator;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.examples.RedisForATest;
import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The jar that operators run: what it is made of is enough for what the commands do. */
class OperatorJarIT {
    @Test
    void findsAndCountsByItself() throws Exception {
        try (RedisForATest redis = RedisForATest.start()) {
            try (Idempotence idempotence = Idempotence.over(RedisIdempotenceStorage.connect(redis.address()))) {
                idempotence.execute(new IdempotenceId("order-7"), () -> "paid");
            }

            assertThat(run("find", "order-7", "--redis", redis.address()))
                    .contains("execute  completed")
                    .endsWith("exit 0");
            assertThat(run("stats", "--json", "--redis", redis.address()))
                    .contains("\"completed\":1")
                    .endsWith("exit 0");
        }
    }

    /** Without a driver on its class path: one is added beside it, as the documentation says. */
    @Test
    void knowsDatabasesToo() throws Exception {
        assertThat(run("stats", "--jdbc", "jdbc:nobody://host/db"))
                .contains("no driver on the class path")
                .endsWith("exit 2");
    }

    private static String run(String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-jar",
                Path.of("target", "idempotence.jar").toString()));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.outputWriter().close();
        process.onExit().orTimeout(60, TimeUnit.SECONDS).exceptionally(late -> process.destroyForcibly());
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return output + "exit " + process.waitFor();
    }
}
