package io.idempotence.spring.actuate;

import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.internal.Switches;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.event.ApplicationEnvironmentPreparedEvent;
import org.springframework.boot.context.logging.LoggingApplicationListener;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.context.ApplicationListener;
import org.springframework.core.Ordered;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;

/**
 * The default of {@code logging.pattern.correlation}: the IDs of traces, if Spring Boot expects any, and the MDC's {@code idempotenceId}. A
 * line without an ID stays as it is. {@code idempotence.log-correlation=false} switches this off.
 *
 * <p>A listener, because the interface of environment post-processors is another one in Spring Boot 4. It runs when the application's
 * properties are known, and before the log is set up.
 */
final class LogCorrelation implements ApplicationListener<ApplicationEnvironmentPreparedEvent>, Ordered {
    private static final String PATTERN = "logging.pattern.correlation";

    /** The ID in brackets, or nothing, in the syntax of each log. */
    private static final Map<String, String> ID = Map.of(
            "LogbackLoggingSystem", "%esb(%X{idempotenceId})",
            "Log4J2LoggingSystem", "%esb{%X{idempotenceId}}");

    @Override
    public int getOrder() {
        return LoggingApplicationListener.DEFAULT_ORDER - 1;
    }

    @Override
    public void onApplicationEvent(ApplicationEnvironmentPreparedEvent event) {
        Environment environment = event.getEnvironment();
        String id = ID.get(LoggingSystem.get(event.getSpringApplication().getClassLoader())
                .getClass()
                .getSimpleName());
        if (id != null && isOn(environment)) {
            event.getEnvironment().getPropertySources().addLast(new Default(environment, id));
        }
    }

    private static boolean isOn(Environment environment) {
        try {
            return Switches.isOn(environment, "idempotence.log-correlation", true);
        } catch (SetUpException e) {
            // Before there is a log, nobody would see it. The check of all properties fails the start.
            return true;
        }
    }

    /** Asked for only if the application has no pattern of its own. */
    private static final class Default extends EnumerablePropertySource<String> {
        /** Not the source: Spring Boot would look for properties there, and so in here again. */
        private final Environment environment;

        Default(Environment environment, String id) {
            super("idempotenceLogCorrelation", id);
            this.environment = environment;
        }

        @Override
        public String[] getPropertyNames() {
            return new String[] {PATTERN};
        }

        @Override
        public @Nullable Object getProperty(String name) {
            if (!name.equals(PATTERN)) {
                return null;
            }
            boolean isTraced =
                    environment.getProperty(LoggingSystem.EXPECT_CORRELATION_ID_PROPERTY, Boolean.class, false);
            return isTraced ? "%correlationId" + source : source;
        }
    }
}
