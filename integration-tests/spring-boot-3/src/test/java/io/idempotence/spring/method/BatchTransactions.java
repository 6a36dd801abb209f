package io.idempotence.spring.method;

import org.springframework.batch.support.transaction.ResourcelessTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;

/** The transactions of Spring Batch, whose package differs between its versions. */
final class BatchTransactions {
    private BatchTransactions() {}

    static PlatformTransactionManager withoutResources() {
        return new ResourcelessTransactionManager();
    }
}
