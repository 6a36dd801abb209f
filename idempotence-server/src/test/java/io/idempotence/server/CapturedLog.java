package io.idempotence.server;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.util.List;
import org.slf4j.LoggerFactory;

/** What a class logs, until it is closed. */
public final class CapturedLog implements AutoCloseable {
    private final Logger logger;
    private final ListAppender<ILoggingEvent> appender = new ListAppender<>();

    private CapturedLog(Logger logger) {
        this.logger = logger;
    }

    public static CapturedLog of(Class<?> type) {
        CapturedLog log = new CapturedLog((Logger) LoggerFactory.getLogger(type));
        log.appender.start();
        log.logger.addAppender(log.appender);
        return log;
    }

    /** The events at WARN. */
    public List<ILoggingEvent> warnings() {
        return List.copyOf(appender.list).stream()
                .filter(event -> event.getLevel() == Level.WARN)
                .toList();
    }

    @Override
    public void close() {
        logger.detachAppender(appender);
    }
}
