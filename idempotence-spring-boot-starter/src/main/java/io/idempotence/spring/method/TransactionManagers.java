package io.idempotence.spring.method;

import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionExecutionListener;

/** The post-processor that adds a listener to every transaction manager of the application. */
final class TransactionManagers implements BeanPostProcessor {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionManagers.class);

    private final TransactionExecutionListener listener;

    TransactionManagers(TransactionEffects effects) {
        this.listener = effects.new Listener();
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof ConfigurableTransactionManager manager) {
            // First, because another listener that throws ends the round.
            List<TransactionExecutionListener> listeners = new ArrayList<>();
            listeners.add(listener);
            listeners.addAll(manager.getTransactionExecutionListeners());
            manager.setTransactionExecutionListeners(listeners);
        } else if (bean instanceof PlatformTransactionManager) {
            LOG.warn(
                    "The transaction manager '{}' ({}) has no listeners, so its commits are not seen: a failure after one of them may"
                            + " release an ID whose operation took effect. Let the manager implement ConfigurableTransactionManager, or"
                            + " call IdempotentExecution.tookEffect() after a commit",
                    beanName,
                    bean.getClass().getName());
        }
        return bean;
    }
}
