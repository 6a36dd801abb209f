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

/** The machine that is measured on. */
final class Machine {
    private static final Path PROCESSORS = Path.of("/proc/cpuinfo");
    private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getOperatingSystemMXBean();

    private Machine() {}

    /** The processes that waited for a processor, or had one, in the last minute. */
    static double load() {
        return SYSTEM.getSystemLoadAverage();
    }

    /** In words. */
    static String describe() throws IOException {
        return String.format(
                Locale.ROOT,
                "%d processors (%s), %s %s, %s %s.",
                SYSTEM.getAvailableProcessors(),
                processor(),
                SYSTEM.getName(),
                SYSTEM.getVersion(),
                System.getProperty("java.vm.name"),
                System.getProperty("java.version"));
    }

    /** When it was used, and how busy it was before: the load of others makes every figure doubtful. */
    static String stateOfRun(double loadBefore) {
        return String.format(
                Locale.ROOT,
                "Measured on %s; load average before the run: %.2f, cores: %d.",
                LocalDate.now(Clock.systemUTC()),
                loadBefore,
                SYSTEM.getAvailableProcessors());
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
