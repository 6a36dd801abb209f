package io.idempotence.client.feign;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.util.List;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.slf4j.LoggerFactory;

/** The messages that a logger gets during a test. No appender prints them. Register it as a {@code @RegisterExtension}. */
final class SilentLog implements BeforeEachCallback, AfterEachCallback {
    private final Logger logger;
    private final ListAppender<ILoggingEvent> log = new ListAppender<>() {
        /** An event names the thread that asks it first. */
        @Override
        protected void append(ILoggingEvent event) {
            event.prepareForDeferredProcessing();
            super.append(event);
        }
    };

    SilentLog(String name) {
        this.logger = (Logger) LoggerFactory.getLogger(name);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        log.start();
        logger.addAppender(log);
        logger.setAdditive(false);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        logger.detachAppender(log);
        logger.setAdditive(true);
        logger.setLevel(null);
    }

    Logger logger() {
        return logger;
    }

    List<ILoggingEvent> events() {
        return List.copyOf(log.list);
    }

    /** Those of this thread: an asynchronous call of an earlier test may end now. */
    List<String> messagesOfThisThread() {
        String thread = Thread.currentThread().getName();
        return events().stream()
                .filter(event -> event.getThreadName().equals(thread))
                .map(ILoggingEvent::getFormattedMessage)
                .toList();
    }

    List<String> messages() {
        return events().stream().map(ILoggingEvent::getFormattedMessage).toList();
    }
}
