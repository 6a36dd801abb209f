package io.idempotence.benchmarks;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.OperatingSystemMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.LocalDate;
import java.util.Locale;
import java.util.stream.Stream;

/** What is measured on. */
final class Machine {
    private static final Path PROCESSORS = Path.of("/proc/cpuinfo");

    private Machine() {}

    /** In words, with the load before the measurement: a busy machine makes every figure doubtful. */
    static String describe() throws IOException {
        OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();
        return String.format(
                Locale.ROOT,
                "Measured on %s: %d processors (%s), %s %s, %s %s.%nLoad average before the measurement: %.1f.",
                LocalDate.now(Clock.systemUTC()),
                system.getAvailableProcessors(),
                processor(),
                system.getName(),
                system.getVersion(),
                System.getProperty("java.vm.name"),
                System.getProperty("java.version"),
                system.getSystemLoadAverage());
    }

    private static String processor() throws IOException {
        if (!Files.isReadable(PROCESSORS)) {
            return System.getProperty("os.arch");
        }
        try (Stream<String> lines = Files.lines(PROCESSORS)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .findFirst()
                    .orElse(System.getProperty("os.arch"));
        }
    }
}
