package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A separate process that runs a {@code main} of the tests and is killed by SIGKILL at a step that it reports. */
public final class KilledProcess {
    private KilledProcess() {}

    /** Starts it, waits until it prints the line, and kills it. */
    public static void at(String line, Class<?> main, String... args) throws Exception {
        Process process = new ProcessBuilder(Stream.concat(
                                List.of(
                                        Path.of(System.getProperty("java.home"), "bin", "java")
                                                .toString(),
                                        "-XX:TieredStopAtLevel=1",
                                        "-cp",
                                        System.getProperty(
                                                "surefire.test.class.path", System.getProperty("java.class.path")),
                                        main.getName())
                                        .stream(),
                                Stream.of(args))
                        .toList())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader out = process.inputReader(StandardCharsets.UTF_8)) {
            String said = out.readLine();
            while (said != null && !said.equals(line)) {
                said = out.readLine();
            }
            assertThat(said).isEqualTo(line);
        } finally {
            process.destroyForcibly();
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        }
        assertThat(process.exitValue()).isEqualTo(128 + 9);
    }

    /** Reports a step and then waits to be killed. Called in the separate process. */
    public static void here(String line) throws Exception {
        System.out.println(line);
        System.out.flush();
        System.in.transferTo(OutputStream.nullOutputStream());
    }
}
