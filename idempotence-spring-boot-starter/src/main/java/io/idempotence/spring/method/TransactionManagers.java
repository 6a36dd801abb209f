package io.idempotence.spring.method;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.HierarchicalBeanFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.config.SingletonBeanRegistry;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.TransactionManager;

/** The post-processor that adds a listener to every transaction manager, even to one that was created before it. */
final class TransactionManagers implements BeanPostProcessor, SmartInitializingSingleton, DisposableBean {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionManagers.class);

    private final TransactionExecutionListener listener;
    private final ConfigurableListableBeanFactory beans;
    private final Set<String> seen = ConcurrentHashMap.newKeySet();
    /** Those of parent contexts, which outlive this one. */
    private final List<ConfigurableTransactionManager> ofParents = new ArrayList<>();

    TransactionManagers(TransactionEffects effects, ConfigurableListableBeanFactory beans) {
        this.listener = effects.new Listener();
        this.beans = beans;
    }

    /** Another post-processor may depend on a manager, which is then created before this one sees beans. */
    @Override
    public void afterSingletonsInstantiated() {
        for (String name : namesIn(beans)) {
            if (beans.containsSingleton(name) && !seen.contains(name)) {
                postProcessAfterInitialization(beans.getBean(name), name);
            }
        }
        if (beans.getParentBeanFactory() instanceof ListableBeanFactory parent) {
            addToParent(parent);
        }
    }

    /** No post-processor sees the beans of a parent context, unless that has the starter, too. */
    private void addToParent(ListableBeanFactory parent) {
        if (parent.getBeanNamesForType(TransactionManagers.class, true, false).length > 0) {
            return;
        }
        for (String name : namesIn(parent)) {
            // A manager that does not exist yet may be one that cannot be created here.
            if (parent instanceof SingletonBeanRegistry created && created.containsSingleton(name)) {
                Object bean = postProcessAfterInitialization(parent.getBean(name), name);
                if (bean instanceof ConfigurableTransactionManager manager) {
                    ofParents.add(manager);
                }
            }
        }
        if (parent instanceof HierarchicalBeanFactory child
                && child.getParentBeanFactory() instanceof ListableBeanFactory next) {
            addToParent(next);
        }
    }

    @Override
    public void destroy() {
        for (ConfigurableTransactionManager manager : ofParents) {
            synchronized (manager) {
                List<TransactionExecutionListener> others = new ArrayList<>(manager.getTransactionExecutionListeners());
                others.remove(listener);
                manager.setTransactionExecutionListeners(others);
            }
        }
    }

    /** Adds the listener as the first, because another one that throws ends the round. Another context may add its own at the same time. */
    private void add(ConfigurableTransactionManager manager) {
        synchronized (manager) {
            // It may be a bean under another name, too.
            if (!manager.getTransactionExecutionListeners().contains(listener)) {
                List<TransactionExecutionListener> listeners = new ArrayList<>();
                listeners.add(listener);
                listeners.addAll(manager.getTransactionExecutionListeners());
                manager.setTransactionExecutionListeners(listeners);
            }
        }
    }

    private static String[] namesIn(ListableBeanFactory factory) {
        return factory.getBeanNamesForType(TransactionManager.class, false, false);
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof TransactionManager) {
            seen.add(beanName);
        }
        if (bean instanceof ConfigurableTransactionManager manager) {
            add(manager);
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
