package io.idempotence.spring.server;

import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.SetUpException;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/** The check that a context does not declare a storage while the {@code Idempotence} of its parent, over another storage, is used. */
final class IgnoredStorageCheck implements SmartInitializingSingleton {
    private final ConfigurableListableBeanFactory beans;

    IgnoredStorageCheck(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    @Override
    public void afterSingletonsInstantiated() {
        BeanFactory parent = beans.getParentBeanFactory();
        if (!(parent instanceof ListableBeanFactory ofParent)
                || beans.getBeanNamesForType(Idempotence.class, true, false).length > 0
                || isDefault()) {
            return;
        }
        String[] ignored = beans.getBeanNamesForType(IdempotenceStorage.class, true, false);
        String[] used = BeanFactoryUtils.beanNamesForTypeIncludingAncestors(ofParent, Idempotence.class, true, false);
        if (ignored.length > 0 && used.length > 0) {
            throw SetUpException.of(
                    "This context declares the bean " + quoted(ignored) + " of IdempotenceStorage, but uses the bean "
                            + quoted(used) + " of Idempotence of its parent context, which has another storage.",
                    "Declare a bean of Idempotence over that storage in this context, or move the storage to the parent context,"
                            + " or remove it.");
        }
    }

    /** Whether the storage of this context is the starter's own, which is not made unless something uses it. */
    private boolean isDefault() {
        return beans.getBeanNamesForType(ChosenStorage.class, true, false).length > 0;
    }

    private static String quoted(String[] names) {
        return Arrays.stream(names).sorted().map(name -> "'" + name + "'").collect(Collectors.joining(", "));
    }
}
