package io.idempotence.server;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.util.List;
import org.slf4j.LoggerFactory;

/** The log events of a class at WARN and above, until this is closed. Until then, no other appender gets them. */
public final class CapturedLog implements AutoCloseable {
    private final Logger logger;
    private final Level level;
    private final ListAppender<ILoggingEvent> appender = new ListAppender<>() {
        @Override
        protected void append(ILoggingEvent event) {
            // The MDC is that of now.
            event.prepareForDeferredProcessing();
            super.append(event);
        }
    };

    private CapturedLog(Logger logger) {
        this.logger = logger;
        this.level = logger.getLevel();
    }

    public static CapturedLog of(Class<?> type) {
        CapturedLog log = new CapturedLog((Logger) LoggerFactory.getLogger(type));
        log.appender.start();
        log.logger.addAppender(log.appender);
        log.logger.setLevel(Level.WARN);
        log.logger.setAdditive(false);
        return log;
    }

    /** The events at WARN. */
    public List<ILoggingEvent> warnings() {
        return at(Level.WARN);
    }

    /** The events at ERROR. */
    public List<ILoggingEvent> errors() {
        return at(Level.ERROR);
    }

    private List<ILoggingEvent> at(Level wanted) {
        return List.copyOf(appender.list).stream()
                .filter(event -> event.getLevel() == wanted)
                .toList();
    }

    @Override
    public void close() {
        logger.setAdditive(true);
        logger.setLevel(level);
        logger.detachAppender(appender);
    }
}
