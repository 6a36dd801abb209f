package io.idempotence.spring.method;

import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import java.sql.Connection;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.WeakHashMap;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.BeansException;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.JdbcTransactionObjectSupport;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The marks of a {@link JdbcIdempotenceStorage} in transactions of its own {@code DataSource}. The storage may be in proxies of Spring AOP.
 * Thread-safe.
 */
final class JdbcAppliedMarks implements AppliedMarks {
    private final ConfigurableListableBeanFactory beans;
    /** Executions with a committed mark. There is one mark for each ID, and it covers later transactions of the same execution. */
    private final Set<IdempotentExecution> marked =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /** The storages in this mode, once all storages are made. */
    private volatile @Nullable List<JdbcIdempotenceStorage> known;

    JdbcAppliedMarks(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    /** The storages in this mode, of the singletons that are made and the beans of other scopes: a transaction must not make a singleton. */
    private List<JdbcIdempotenceStorage> storages() {
        List<JdbcIdempotenceStorage> found = known;
        if (found == null) {
            List<String> names = Arrays.stream(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(
                            beans, IdempotenceStorage.class, true, false))
                    .filter(name -> !ScopedProxyUtils.isScopedTarget(name))
                    .toList();
            List<String> made = names.stream().filter(this::isMade).toList();
            found = made.stream()
                    .map(beans::getBean)
                    .map(JdbcAppliedMarks::unwrapped)
                    .filter(JdbcIdempotenceStorage.class::isInstance)
                    .map(JdbcIdempotenceStorage.class::cast)
                    .filter(JdbcIdempotenceStorage::isInTransaction)
                    .distinct()
                    .toList();
            if (!made.isEmpty() && made.size() == names.size()) {
                known = found;
            }
        }
        return found;
    }

    /** Whether there may have been an execution over the storage. */
    private boolean isMade(String name) {
        return !beans.containsBeanDefinition(name)
                || !beans.getMergedBeanDefinition(name).isSingleton()
                || beans.containsSingleton(name);
    }

    /** The storages, of which there is one at most. */
    private Optional<JdbcIdempotenceStorage> storage() {
        List<JdbcIdempotenceStorage> found = storages();
        if (found.size() > 1) {
            throw SetUpException.of(
                    found.size()
                            + " storages are in in-transaction mode. The starter sets marks for one only, so operations of"
                            + " another could run twice.",
                    "Keep one of them, or build the others without inTransaction().");
        }
        return found.stream().findFirst();
    }

    private static Object unwrapped(Object storage) {
        Object target = AopProxyUtils.getSingletonTarget(storage);
        return target == null ? storage : unwrapped(target);
    }

    @Override
    public boolean isOn() {
        try {
            return !storages().isEmpty();
        } catch (BeansException e) {
            // Spring would leave the transaction open if its listener threw. mark() throws this again, and it is rolled
            // back.
            return true;
        }
    }

    @Override
    public void check(IdempotenceServerProperties properties) {
        if (properties.storage() == Storage.JDBC && properties.jdbc().inTransaction()) {
            List<Object> found = beans.getBeanProvider(IdempotenceStorage.class).stream()
                    .map(JdbcAppliedMarks::unwrapped)
                    .toList();
            if (!found.isEmpty() && found.stream().noneMatch(JdbcIdempotenceStorage.class::isInstance)) {
                throw SetUpException.ofProperty(
                        "idempotence.server.jdbc.in-transaction",
                        true,
                        "the storage is wrapped in a " + found.get(0).getClass().getName()
                                + ", so its marks cannot be set, and an operation could run twice",
                        "Wrap the storage in a proxy of Spring AOP, or wrap the DataSource instead.",
                        null);
            }
        }
        storage();
    }

    @Override
    public @Nullable Object connection() {
        try {
            return storages().stream()
                    .findFirst()
                    .map(JdbcIdempotenceStorage::dataSource)
                    .map(TransactionSynchronizationManager::getResource)
                    .orElse(null);
        } catch (BeansException e) {
            return null;
        }
    }

    @Override
    public boolean mark(
            IdempotentExecution execution, @Nullable TransactionExecution transaction, @Nullable Object around) {
        JdbcIdempotenceStorage storage = storage().orElse(null);
        if (storage == null || marked.contains(execution)) {
            return false;
        }
        DataSource dataSource = storage.dataSource();
        if (!isOf(connection(), transaction, around)) {
            throw new IllegalStateException("the transaction '"
                    + TransactionSynchronizationManager.getCurrentTransactionName()
                    + "' is not one of the DataSource that has the idempotence records, so it cannot commit a mark and is rolled back; use"
                    + " one DataSource for both, mark the transaction as read-only if it changes nothing, or turn off"
                    + " idempotence.server.jdbc.in-transaction");
        }
        Connection connection = DataSourceUtils.getConnection(dataSource);
        try {
            storage.markApplied(connection, execution);
            return true;
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    /** Whether a commit of this transaction commits what its thread writes through the connection. */
    private static boolean isOf(
            @Nullable Object connection, @Nullable TransactionExecution transaction, @Nullable Object around) {
        if (connection == null
                || !(transaction instanceof DefaultTransactionStatus status)
                || !status.hasTransaction()) {
            return connection != null;
        }
        // The connection may be that of a transaction around this one, of another manager.
        return status.getTransaction() instanceof JdbcTransactionObjectSupport jdbc
                ? jdbc.hasConnectionHolder() && jdbc.getConnectionHolder() == connection
                : connection != around
                        && status.getTransaction()
                                .getClass()
                                .getName()
                                .startsWith("org.springframework.transaction.jta.");
    }

    @Override
    public boolean mayWaitFor(@Nullable TransactionExecution transaction) {
        return transaction instanceof DefaultTransactionStatus status
                && status.hasTransaction()
                && status.getTransaction() instanceof JdbcTransactionObjectSupport;
    }

    @Override
    public void committed(IdempotentExecution execution) {
        marked.add(execution);
    }
}
