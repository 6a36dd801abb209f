package io.idempotence.it.matrix;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Handler;
import org.slf4j.LoggerFactory;

/** A switch that turns all logging off until it is closed. */
final class QuietLogs implements AutoCloseable {
    private final Logger logback = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    private final Level logbackLevel = logback.getLevel();
    /** Of the JDK's logging: Tomcat sets levels of its own loggers, which a level of the root does not reach. */
    private final Map<Handler, java.util.logging.Level> handlerLevels = new HashMap<>();

    QuietLogs() {
        logback.setLevel(Level.OFF);
        for (Handler handler : java.util.logging.Logger.getLogger("").getHandlers()) {
            handlerLevels.put(handler, handler.getLevel());
            handler.setLevel(java.util.logging.Level.OFF);
        }
    }

    @Override
    public void close() {
        logback.setLevel(logbackLevel);
        handlerLevels.forEach(Handler::setLevel);
    }
}
