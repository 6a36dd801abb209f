package io.idempotence.it.matrix;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import org.slf4j.LoggerFactory;

/** Nothing is logged until this is closed. */
final class QuietLogs implements AutoCloseable {
    private final Logger logback = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    private final java.util.logging.Logger jdk = java.util.logging.Logger.getLogger("");
    private final Level logbackLevel = logback.getLevel();
    private final java.util.logging.Level jdkLevel = jdk.getLevel();

    QuietLogs() {
        logback.setLevel(Level.OFF);
        jdk.setLevel(java.util.logging.Level.OFF);
    }

    @Override
    public void close() {
        logback.setLevel(logbackLevel);
        jdk.setLevel(jdkLevel);
    }
}
