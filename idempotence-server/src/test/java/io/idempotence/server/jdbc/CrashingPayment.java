package io.idempotence.server.jdbc;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.KilledProcess;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.time.Duration;

/** A process that makes a payment in a transaction. At the step that its arguments name, it reports the step and waits to be killed. */
final class CrashingPayment {
    static final Duration LEASE = Duration.ofMillis(300);

    private CrashingPayment() {}

    enum Step {
        CLAIMED,
        INSERTED,
        COMMITTED,
        COMPLETED
    }

    public static void main(String[] args) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(args[0]);
        config.setMaximumPoolSize(2);
        HikariDataSource dataSource = new HikariDataSource(config);
        StorageKey key = new StorageKey(args[1]);
        Step last = Step.valueOf(args[2]);
        JdbcIdempotenceStorage storage =
                Databases.storage(dataSource).inTransaction().build();
        Claim claim = Claims.claim(storage, key, LEASE);
        at(Step.CLAIMED, last);
        try (Connection business = dataSource.getConnection()) {
            business.setAutoCommit(false);
            pay(storage, business, claim);
            at(Step.INSERTED, last);
            business.commit();
        }
        at(Step.COMMITTED, last);
        storage.complete(claim, new byte[] {2, 'o', 'k'}, Claims.RETENTION);
        at(Step.COMPLETED, last);
    }

    static void pay(JdbcIdempotenceStorage storage, Connection business, Claim claim) throws Exception {
        try (PreparedStatement insert = business.prepareStatement("INSERT INTO payment VALUES (?)")) {
            insert.setString(1, claim.key().value());
            insert.executeUpdate();
        }
        storage.markApplied(business, claim);
    }

    static String at(Step step) {
        return "at " + step;
    }

    private static void at(Step step, Step last) throws Exception {
        if (step == last) {
            KilledProcess.here(at(step));
        }
    }
}
