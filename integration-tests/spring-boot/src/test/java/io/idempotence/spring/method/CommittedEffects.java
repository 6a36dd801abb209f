package io.idempotence.spring.method;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import javax.sql.DataSource;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.Async;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;

/** Handlers and bean methods that insert a row under their ID, commit it or roll it back, and fail. */
final class CommittedEffects {
    private CommittedEffects() {}

    static class BrokenResult {
        public String getName() {
            throw new IllegalStateException("cannot be serialised");
        }
    }

    static class InnerService {
        private final Map<String, JdbcTemplate> databases;

        InnerService(DataSource h2, @Qualifier("pg") DataSource pg) {
            databases = Map.of("h2", new JdbcTemplate(h2), "pg", new JdbcTemplate(pg));
        }

        JdbcTemplate in(String database) {
            return databases.get(database);
        }

        int effects(String database, String id) {
            return in(database).queryForObject("select count(*) from effect where id = ?", Integer.class, id);
        }

        @Idempotent(id = "#id")
        public int once(String id) {
            in("h2").update("insert into effect values (?, 'once')", id);
            return effects("h2", id);
        }

        @Idempotent(id = "#id")
        public CompletableFuture<Integer> onceInFuture(String id) {
            in("h2").update("insert into effect values (?, 'once')", id);
            return CompletableFuture.completedFuture(effects("h2", id));
        }
    }

    static class OuterService {
        private final InnerService inner;

        OuterService(InnerService inner) {
            this.inner = inner;
        }

        /** Waits for the future before it commits. */
        @Transactional
        public int futureInMyTransaction(String id, RuntimeException afterwards) {
            int result = inner.onceInFuture(id).join();
            if (afterwards != null) {
                throw afterwards;
            }
            return result;
        }

        @Transactional
        public int inMyTransaction(String id, RuntimeException afterwards) {
            int result = inner.once(id);
            if (afterwards != null) {
                throw afterwards;
            }
            return result;
        }
    }

    static class AsyncService {
        private final InnerService inner;
        private final TransactionTemplate transaction;

        AsyncService(InnerService inner, PlatformTransactionManager transactions) {
            this.inner = inner;
            this.transaction = new TransactionTemplate(transactions);
        }

        String commitAndFail(String id) {
            transaction.executeWithoutResult(
                    status -> inner.in("h2").update("insert into effect values (?, 'async')", id));
            throw new IllegalStateException("on a thread without an execution");
        }

        @Async("plain")
        public CompletableFuture<String> async(String id) {
            return CompletableFuture.completedFuture(commitAndFail(id));
        }

        @Idempotent(id = "#id")
        public CompletableFuture<String> future(String id) {
            return CompletableFuture.supplyAsync(() -> commitAndFail(id));
        }

        @Idempotent(id = "#id")
        public CompletableFuture<String> failing(String id) {
            return CompletableFuture.supplyAsync(() -> {
                throw new IllegalStateException("nothing was committed");
            });
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final InnerService inner;
        private final Map<String, PlatformTransactionManager> managers;

        private final Executor executor;
        private final AsyncService async;

        Handlers(
                InnerService inner,
                AsyncService async,
                Map<String, PlatformTransactionManager> managers,
                @Qualifier("applicationTaskExecutor") Executor executor) {
            this.inner = inner;
            this.managers = managers;
            this.executor = executor;
            this.async = async;
        }

        private TransactionTemplate transaction(String database) {
            return new TransactionTemplate(managers.get(database + "Transactions"));
        }

        private void effect(String database, String id) {
            inner.in(database).update("insert into effect values (?, 'x')", id);
        }

        private void commit(String database, String id) {
            transaction(database).executeWithoutResult(status -> effect(database, id));
        }

        /** Rolls a transaction back, within which another one of this propagation has taken effect. */
        private String rollBackAround(int propagation, String database, String id) {
            TransactionTemplate within = transaction(database);
            within.setPropagationBehavior(propagation);
            transaction(database).executeWithoutResult(status -> {
                within.executeWithoutResult(also -> effect(database, id));
                throw new IllegalStateException("rolls the outer one back");
            });
            return "never";
        }

        @PostMapping("/{database}/thrown-after/{id}")
        String thrownAfter(@PathVariable("database") String database, @PathVariable("id") String id) {
            commit(database, id);
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/{database}/serialisation/{id}")
        BrokenResult serialisation(@PathVariable("database") String database, @PathVariable("id") String id) {
            commit(database, id);
            return new BrokenResult();
        }

        @PostMapping("/{database}/after-commit-listener/{id}")
        String listener(@PathVariable("database") String database, @PathVariable("id") String id) {
            transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void afterCommit() {
                        throw new IllegalStateException("in a listener after the commit");
                    }
                });
            });
            return "never";
        }

        @PostMapping("/{database}/requires-new/{id}")
        String requiresNew(@PathVariable("database") String database, @PathVariable("id") String id) {
            return rollBackAround(TransactionDefinition.PROPAGATION_REQUIRES_NEW, database, id);
        }

        @PostMapping("/{database}/callable/{id}")
        Callable<String> callable(@PathVariable("database") String database, @PathVariable("id") String id) {
            return () -> {
                commit(database, id);
                throw new IllegalStateException("on the thread of a callable");
            };
        }

        @PostMapping("/{database}/future/{id}")
        CompletableFuture<String> future(@PathVariable("database") String database, @PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(
                    () -> {
                        commit(database, id);
                        throw new IllegalStateException("on a thread of the application");
                    },
                    executor);
        }

        @PostMapping("/{database}/plain-future/{id}")
        CompletableFuture<String> plainFuture(@PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> async.commitAndFail(id));
        }

        @PostMapping("/{database}/async-service/{id}")
        CompletableFuture<String> asyncService(@PathVariable("id") String id) {
            return async.async(id);
        }

        @PostMapping("/{database}/deferred/{id}")
        DeferredResult<String> deferred(@PathVariable("id") String id) {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> async.commitAndFail(id))
                    .whenComplete((nothing, failure) -> result.setErrorResult(failure));
            return result;
        }

        @PostMapping("/{database}/deferred-in-commit/{id}")
        DeferredResult<String> deferredInCommit(
                @PathVariable("database") String database, @PathVariable("id") String id) {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void afterCommit() {
                        result.setErrorResult(new IllegalStateException("in a listener after the commit"));
                    }
                });
            }));
            return result;
        }

        @PostMapping("/{database}/callable-of-future/{id}")
        Callable<String> callableOfFuture(@PathVariable("id") String id) {
            return () ->
                    CompletableFuture.supplyAsync(() -> async.commitAndFail(id)).get();
        }

        @PostMapping("/{database}/failing-future/{id}")
        CompletableFuture<String> failingFuture() {
            return async.failing(UUID.randomUUID().toString());
        }

        @PostMapping("/{database}/failing-deferred/{id}")
        DeferredResult<String> failingDeferred() {
            DeferredResult<String> result = new DeferredResult<>();
            result.setErrorResult(new IllegalStateException("nothing was committed"));
            return result;
        }

        @PostMapping("/{database}/rolled-back-future/{id}")
        CompletableFuture<String> rolledBackFuture(
                @PathVariable("database") String database, @PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> rolledBack(database, id));
        }

        @PostMapping("/{database}/constraint-in-future/{id}")
        CompletableFuture<String> constraintInFuture(@PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> constraint(id));
        }

        @PostMapping("/{database}/kept/{id}")
        @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
        String kept(@PathVariable("database") String database, @PathVariable("id") String id) {
            commit(database, id);
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/{database}/rolled-back/{id}")
        String rolledBack(@PathVariable("database") String database, @PathVariable("id") String id) {
            transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                throw new IllegalStateException("rolls back");
            });
            return "never";
        }

        @PostMapping("/{database}/nested/{id}")
        String nested(@PathVariable("database") String database, @PathVariable("id") String id) {
            return rollBackAround(TransactionDefinition.PROPAGATION_NESTED, database, id);
        }

        @PostMapping("/{database}/read-only/{id}")
        String readOnly(@PathVariable("database") String database, @PathVariable("id") String id) {
            TransactionTemplate reading = transaction(database);
            reading.setReadOnly(true);
            reading.execute(status -> inner.effects(database, id));
            throw new IllegalStateException("after reading");
        }

        @PostMapping("/{database}/marked-rollback-only/{id}")
        String rollbackOnly(@PathVariable("database") String database, @PathVariable("id") String id) {
            transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                status.setRollbackOnly();
            });
            throw new IllegalStateException("after a rollback");
        }

        @PostMapping("/pg/lost-at-commit/{id}")
        String lost(@PathVariable("id") String id) {
            transaction("pg").executeWithoutResult(status -> {
                effect("pg", id);
                Integer connection = inner.in("pg").queryForObject("select pg_backend_pid()", Integer.class);
                TransactionTemplate other = transaction("pg");
                other.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
                other.setReadOnly(true);
                other.execute(also -> inner.in("pg")
                        .queryForObject("select pg_terminate_backend(" + connection + ")", Boolean.class));
            });
            return "never";
        }

        @PostMapping("/pg/constraint-at-commit/{id}")
        String constraint(@PathVariable("id") String id) {
            transaction("pg").executeWithoutResult(status -> {
                inner.in("pg").update("insert into late values (?)", id);
                inner.in("pg").update("insert into late values (?)", id);
            });
            return "never";
        }
    }
}
