package io.idempotence.spring.method;

import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import java.sql.Connection;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopProxyUtils;
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
    private final Supplier<Stream<IdempotenceStorage>> storages;
    private final BooleanSupplier isStorageMade;
    /** Executions with a committed mark. There is one mark for each ID, and it covers later transactions of the same execution. */
    private final Set<IdempotentExecution> marked =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /** The storage in this mode, once it was looked up; empty if there is none. */
    private volatile @Nullable Optional<JdbcIdempotenceStorage> known;

    /**
     * @param storages the beans; of several, at most one may be in this mode
     * @param isStorageMade whether there may have been an execution: a transaction must not make the storage
     */
    JdbcAppliedMarks(Supplier<Stream<IdempotenceStorage>> storages, BooleanSupplier isStorageMade) {
        this.storages = storages;
        this.isStorageMade = isStorageMade;
    }

    private Optional<JdbcIdempotenceStorage> storage() {
        Optional<JdbcIdempotenceStorage> found = known;
        if (found == null) {
            if (!isStorageMade.getAsBoolean()) {
                return Optional.empty();
            }
            found = inThisMode();
            known = found;
        }
        return found;
    }

    private Optional<JdbcIdempotenceStorage> inThisMode() {
        List<JdbcIdempotenceStorage> found = storages.get()
                .map(JdbcAppliedMarks::unwrapped)
                .filter(JdbcIdempotenceStorage.class::isInstance)
                .map(JdbcIdempotenceStorage.class::cast)
                .filter(JdbcIdempotenceStorage::isInTransaction)
                .distinct()
                .toList();
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
        return storage().isPresent();
    }

    @Override
    public void check(IdempotenceServerProperties properties) {
        if (isStorageMade.getAsBoolean()) {
            inThisMode();
        }
        if (properties.storage() != Storage.JDBC || !properties.jdbc().inTransaction()) {
            return;
        }
        List<Object> found = storages.get().map(JdbcAppliedMarks::unwrapped).toList();
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

    @Override
    public @Nullable Object connection() {
        return storage()
                .map(JdbcIdempotenceStorage::dataSource)
                .map(TransactionSynchronizationManager::getResource)
                .orElse(null);
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
