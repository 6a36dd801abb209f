package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** An application in a JVM of its own, on a part of the class path of the tests. */
public final class ChildApplication {
    private ChildApplication() {}

    /** The jars of Spring Boot alone, without a log. */
    private static final List<String> BARE = List.of(
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
            "feign-core-",
            "resilience4j-core-",
            "resilience4j-retry-",
            "resilience4j-circuitbreaker-");

    /**
     * The class path of Spring Boot alone, and of a few more jars.
     *
     * @param more the beginnings of their names
     */
    public static Stream<String> classPath(String... more) {
        List<String> beginnings = Stream.concat(BARE.stream(), Stream.of(more)).toList();
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> beginnings.stream().anyMatch(new File(entry).getName()::startsWith)
                        && !entry.contains("spring-boot-3-tests"));
    }

    /** Runs an application, and expects that it succeeds. Returns what it printed. */
    public static String outputOf(Class<?> main, Stream<String> classPath, String... arguments) throws Exception {
        Stream<String> command = Stream.of(
                System.getProperty("java.home") + "/bin/java",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                classPath.collect(Collectors.joining(File.pathSeparator)),
                main.getName());
        Process application = new ProcessBuilder(
                        Stream.concat(command, Stream.of(arguments)).toList())
                .redirectErrorStream(true)
                .start();
        String output = new String(application.getInputStream().readAllBytes());
        assertThat(application.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(application.exitValue()).as(output).isZero();
        return output;
    }
}
