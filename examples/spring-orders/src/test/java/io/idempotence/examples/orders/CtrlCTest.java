package io.idempotence.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** The example in a process of its own. Its servers run from a directory of their own, by which they are found. */
@Timeout(480)
@EnabledOnOs(value = OS.LINUX, disabledReason = "finds servers by /proc and resets SIGINT by GNU env")
@Tag("all")
class CtrlCTest {
    @TempDir(cleanup = CleanupMode.NEVER)
    private Path directory;

    private Process demo;

    private void run() throws IOException {
        demo = new ProcessBuilder(
                        // a build in the background ignores SIGINT, and so would its children
                        "env",
                        "--default-signal=INT",
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseSerialGC",
                        "-Djava.io.tmpdir=" + directory,
                        "-cp",
                        System.getProperty("java.class.path"),
                        OrdersDemo.class.getName())
                .redirectErrorStream(true)
                .start();
    }

    @AfterEach
    void killWhatIsLeft() {
        demo.destroyForcibly();
        servers().forEach(ProcessHandle::destroyForcibly);
    }

    @Test
    void ctrlCStopsTheServersOfTheRunningExample() throws Exception {
        run();
        awaitLine("Ctrl-C stops everything.");
        assertThat(servers()).hasSizeGreaterThan(1);
        ctrlC();
    }

    @Test
    void ctrlCWhilePostgreSqlStartsLeavesNoServer() throws Exception {
        run();
        await(() -> servers().stream().anyMatch(server -> commandLine(server).contains("/bin/postgres -D")));
        ctrlC();
    }

    /** PostgreSQL was stopped, and then Redis was started and stayed. */
    @Test
    void ctrlCWhileRedisStartsLeavesNoServer() throws Exception {
        run();
        await(() -> {
            try (Stream<Path> files = Files.list(directory)) {
                return files.anyMatch(file -> file.getFileName().toString().startsWith("redis-"));
            }
        });
        ctrlC();
    }

    private static void await(Callable<Boolean> moment) {
        Awaitility.await()
                .atMost(Duration.ofMinutes(2))
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(5))
                .until(moment);
    }

    /** SIGINT for its process alone. A terminal also sends it to the servers. */
    private void ctrlC() throws Exception {
        new ProcessBuilder("kill", "-INT", Long.toString(demo.pid())).start().waitFor();
        Thread reader = new Thread(() -> demo.inputReader().lines().forEach(line -> {}), "output");
        reader.setDaemon(true);
        reader.start();
        assertThat(demo.waitFor(2, TimeUnit.MINUTES)).isTrue();
        Awaitility.await()
                .atMost(Duration.ofMinutes(2))
                .untilAsserted(() -> assertThat(servers().stream().map(CtrlCTest::commandLine))
                        .isEmpty());
    }

    private void awaitLine(String end) throws IOException {
        BufferedReader output = demo.inputReader();
        StringBuilder seen = new StringBuilder();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            seen.append(line).append('\n');
            if (line.strip().equals(end)) {
                return;
            }
        }
        throw new AssertionError("the example ended:\n" + seen);
    }

    /** PostgreSQL is no child of the example: its starter has ended. */
    private List<ProcessHandle> servers() {
        try (Stream<ProcessHandle> all = ProcessHandle.allProcesses()) {
            return all.filter(process -> process.pid() != demo.pid())
                    .filter(process -> commandLine(process).contains(directory.toString()))
                    .toList();
        }
    }

    private static String commandLine(ProcessHandle process) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(process.pid()), "cmdline"))
                    .replace('\0', ' ');
        } catch (IOException e) {
            return ""; // it has ended
        }
    }
}
