package io.idempotence.spring.method;

import java.util.Collection;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.SpringBootVersion;
import org.springframework.core.task.TaskDecorator;

/** The warning of task decorators that Spring Boot 3 does not apply, because there are several. Spring Boot 4 applies all. */
final class UnusedTaskDecorators implements SmartInitializingSingleton {
    private static final Logger LOG = LoggerFactory.getLogger(UnusedTaskDecorators.class);

    private final ListableBeanFactory beans;

    UnusedTaskDecorators(ListableBeanFactory beans) {
        this.beans = beans;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (!SpringBootVersion.getVersion().startsWith("3.")
                || beans.getBeanNamesForType(TaskDecorator.class, true, false).length < 2) {
            return;
        }
        try {
            beans.getBeanProvider(TaskDecorator.class).getIfAvailable();
        } catch (NoUniqueBeanDefinitionException e) {
            Collection<String> names = Objects.requireNonNullElse(e.getBeanNamesFound(), Set.of());
            LOG.warn(
                    "Spring Boot 3 applies none of the task decorators {}, because there are several. A failure after a commit on its"
                            + " executors may then release an ID whose operation took effect. Compose one bean of all, with"
                            + " IdempotentExecution.carried(task), or mark one as @Primary",
                    new TreeSet<>(names));
        }
    }
}
