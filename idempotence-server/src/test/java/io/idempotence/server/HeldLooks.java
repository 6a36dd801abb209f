package io.idempotence.server;

import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/** A lock that keeps the polls and renewals of a storage from falling between two calls of a test. */
final class HeldLooks {
    private final ReadWriteLock lock = new ReentrantReadWriteLock();

    /** @param storage has no faults of its own */
    HeldLooks(FaultyStorage storage) {
        storage.before((call, key) -> {
                    if (isLook(call)) {
                        lock.readLock().lock();
                    }
                })
                .after((call, key) -> {
                    if (isLook(call)) {
                        lock.readLock().unlock();
                    }
                });
    }

    private static boolean isLook(Call call) {
        return call == Call.FIND || call == Call.RENEW;
    }

    /** The result of calls during which no poll and no renewal is under way. */
    <T> T during(Supplier<T> calls) {
        lock.writeLock().lock();
        try {
            return calls.get();
        } finally {
            lock.writeLock().unlock();
        }
    }
}
