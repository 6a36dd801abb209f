package io.idempotence.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/**
 * The resources that were used since the processes started.
 *
 * @param cpuNanos processor time of the JVM that is measured
 * @param allocatedBytes what the live threads of that JVM allocated
 * @param redisCpuNanos processor time of the Redis server
 */
record Usage(long cpuNanos, long allocatedBytes, long redisCpuNanos) {
    static final Usage NONE = new Usage(0, 0, 0);

    /** The usage of this JVM. */
    static Usage ofThisJvm() {
        OperatingSystemMXBean system = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        ThreadMXBean threads = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);
        // A thread that ended since its ID was read counts as -1.
        long allocated = Arrays.stream(threads.getThreadAllocatedBytes(threads.getAllThreadIds()))
                .filter(bytes -> bytes > 0)
                .sum();
        return new Usage(system.getProcessCpuTime(), allocated, 0);
    }

    Usage plus(Usage other) {
        return new Usage(
                cpuNanos + other.cpuNanos, allocatedBytes + other.allocatedBytes, redisCpuNanos + other.redisCpuNanos);
    }

    Usage minus(Usage before) {
        return new Usage(
                cpuNanos - before.cpuNanos,
                allocatedBytes - before.allocatedBytes,
                redisCpuNanos - before.redisCpuNanos);
    }
}
