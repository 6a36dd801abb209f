package io.idempotence.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.EmbeddedRedis;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;

/** The runnable jar holds everything its commands need. */
class OperatorJarIT {
    @Test
    void findsAndCountsByItself() throws Exception {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            try (Idempotence idempotence = Idempotence.over(redis.connect())) {
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

    @Test
    void findsRecordsInPostgreSqlWithItsOwnDriver() throws Exception {
        try (EmbeddedPostgres postgres = EmbeddedPostgreSql.start()) {
            String url = postgres.getJdbcUrl("postgres", "postgres");
            JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(postgres.getPostgresDatabase())
                    .createIfMissing()
                    .build();
            try (Idempotence idempotence = Idempotence.over(storage)) {
                idempotence.execute(new IdempotenceId("order-7"), () -> "paid");
            }

            assertThat(run("find", "order-7", "--jdbc", url))
                    .contains("execute  completed")
                    .endsWith("exit 0");
        }
    }

    @Test
    void hasTheDriverOfMariaDb() throws Exception {
        assertThat(run("stats", "--jdbc", "jdbc:mariadb://127.0.0.1:1/orders?password=sesame"))
                .contains("jdbc:mariadb://127.0.0.1:1/orders cannot be used")
                .doesNotContain("sesame")
                .endsWith("exit 3");
    }

    @Test
    void reportsHowToAddTheDriverOfAnotherDatabase() throws Exception {
        assertThat(run("stats", "--jdbc", "jdbc:nobody://host/db"))
                .contains("java -cp idempotence.jar:driver.jar")
                .endsWith("exit 2");
    }

    @Test
    void reportsTheAddressOfAStorageThatCannotBeReached() throws Exception {
        assertThat(run("stats", "--redis", "127.0.0.1:1"))
                .contains("127.0.0.1:1 cannot be used")
                .endsWith("exit 3");
    }

    @Test
    void carriesTheLicencesOfWhatIsInside() throws Exception {
        try (JarFile jar = new JarFile("target/idempotence.jar")) {
            assertThat(text(jar, "META-INF/LICENSE")).contains("Apache License", "PostgreSQL Global Development Group");
            assertThat(text(jar, "META-INF/licenses/mariadb-java-client.txt"))
                    .contains("GNU LESSER GENERAL PUBLIC LICENSE");
            assertThat(text(jar, "META-INF/licenses/jedis.txt")).contains("Redis, inc.");
            assertThat(text(jar, "META-INF/THIRD-PARTY.txt"))
                    .contains(
                            "redis.clients:jedis:", "org.postgresql:postgresql:", "org.mariadb.jdbc:", "info.picocli:");
        }
    }

    private static String text(JarFile jar, String name) throws IOException {
        try (InputStream in = jar.getInputStream(jar.getEntry(name))) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void printsItsVersion() throws Exception {
        assertThat(run("--version"))
                .startsWith("idempotence " + System.getProperty("project.version"))
                .endsWith("exit 0");
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
