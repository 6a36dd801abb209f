package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import java.io.File;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The starter works with Spring Boot alone: nothing that it supports is needed. */
class BareApplicationTest {
    private static final List<String> NEEDED = List.of(
            "idempotence-",
            "test-classes",
            "spring-boot-3",
            "spring-boot-4",
            "spring-boot-autoconfigure-",
            "spring-core-",
            "spring-beans-",
            "spring-context-",
            "spring-aop-",
            "spring-expression-",
            "spring-jcl-",
            "commons-logging-",
            "micrometer-commons-",
            "micrometer-observation-",
            "jspecify-",
            "slf4j-api-",
            "logback-",
            "feign-core-",
            "resilience4j-core-",
            "resilience4j-retry-",
            "resilience4j-circuitbreaker-",
            "jul-to-slf4j",
            "log4j-");

    @Test
    void startsWithoutServletsDriversAndTheRest() throws Exception {
        assertThat(outputOf(Application.class)).contains("saved true then false");
    }

    @Test
    void keepsRecordsInADatabaseWithoutSpringJdbc() throws Exception {
        assertThat(outputOf(OnDatabase.class, "h2-"))
                .contains("records in the DataSource")
                .contains("saved true then false");
    }

    private static String outputOf(Class<?> main, String... alsoNeeded) throws Exception {
        String classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(path -> isNeeded(path, alsoNeeded))
                .collect(Collectors.joining(File.pathSeparator));
        Process application = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseSerialGC",
                        "-cp",
                        classPath,
                        main.getName())
                .redirectErrorStream(true)
                .start();
        String output = new String(application.getInputStream().readAllBytes());

        assertThat(application.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(application.exitValue()).as(output).isZero();
        return output;
    }

    private static boolean isNeeded(String path, String... more) {
        String name = new File(path).getName();
        return Stream.concat(NEEDED.stream(), Stream.of(more)).anyMatch(name::startsWith)
                && !path.contains("spring-boot-3-tests");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        public static void main(String[] arguments) {
            try (ConfigurableApplicationContext context = SpringApplication.run(Application.class, arguments)) {
                Idempotence idempotence = context.getBean(Idempotence.class);
                System.out.println(
                        "saved " + idempotence.saveIfAbsent("one") + " then " + idempotence.saveIfAbsent("one"));
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class OnDatabase {
        @Bean
        DataSource database() {
            JdbcDataSource database = new JdbcDataSource();
            database.setURL("jdbc:h2:mem:bare;DB_CLOSE_DELAY=-1");
            return database;
        }

        public static void main(String[] arguments) {
            String[] properties = {
                "--idempotence.server.storage=jdbc", "--idempotence.server.jdbc.create-if-missing=true"
            };
            try (ConfigurableApplicationContext context = SpringApplication.run(OnDatabase.class, properties)) {
                Idempotence idempotence = context.getBean(Idempotence.class);
                System.out.println(
                        "saved " + idempotence.saveIfAbsent("one") + " then " + idempotence.saveIfAbsent("one"));
            }
        }
    }
}
