package io.idempotence.spring.method;

import io.idempotence.Idempotent;
import java.util.Collection;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.stereotype.Controller;
import org.springframework.util.ClassUtils;

/** The warning of methods with {@code @Idempotent} in an application whose server half is switched off. Thread-safe. */
final class UnprotectedOperations implements BeanPostProcessor, SmartInitializingSingleton {
    private static final Logger LOG = LoggerFactory.getLogger(UnprotectedOperations.class);

    private final Collection<String> found = new ConcurrentSkipListSet<>();

    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        Class<?> type = ClassUtils.getUserClass(bean);
        if (IdempotentAnnotations.isCandidate(type)) {
            boolean hasHandlers = AnnotatedElementUtils.hasAnnotation(type, Controller.class);
            BeanOperations.annotated(type).forEach((method, covering) -> {
                Idempotent annotation = covering.annotation();
                // An interface without an id may be that of a client, whose half is not switched off.
                boolean isOfServer = hasHandlers
                        || !covering.ofInterface()
                        || !annotation.id().isEmpty();
                if (annotation.value() && isOfServer) {
                    found.add(type.getSimpleName() + "." + method.getName());
                }
            });
        }
        return bean;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (!found.isEmpty()) {
            LOG.warn(
                    "idempotence.server.enabled=false: {} run unprotected, a retry runs them again. Remove the property to protect"
                            + " them, or @Idempotent if that is meant",
                    new TreeSet<>(found));
        }
    }
}
