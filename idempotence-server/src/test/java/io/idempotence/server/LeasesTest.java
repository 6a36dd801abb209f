package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.turbo.TurboFilter;
import ch.qos.logback.core.spi.FilterReply;
import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.internal.DaemonThreads;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;

/** The renewal of leases (T9): which leases are renewed, in which order, and whether an owner notices that its lease may be over. */
class LeasesTest {
    private static final IdempotencePolicy POLICY = IdempotencePolicy.builder()
            .lease(Duration.ofMillis(60))
            .retention(Duration.ofHours(1))
            .onAbandoned(OnAbandoned.RE_EXECUTE)
            .build();

    /** As many as {@link Leases} renews at once of those in trouble. */
    private static final int AT_ONCE = 4;

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final Events events = new Events(null);
    private final Leases leases = new Leases(DaemonThreads.named("idempotence-renewals"));
    private final AtomicInteger owners = new AtomicInteger();
    private final Semaphore goOn = new Semaphore(0);
    private final List<StorageKey> tried = new CopyOnWriteArrayList<>();

    @AfterEach
    void stop() {
        storage.before((call, key) -> {});
        goOn.release(1_000);
        leases.close();
    }

    private static StorageKey key(String id) {
        return StorageKey.of("leases", "", "", IdempotenceId.of(id));
    }

    private Claim claim(String id) {
        ClaimRequest request = new ClaimRequest(
                key(id),
                Fingerprint.NONE,
                new Owner(1, owners.incrementAndGet()),
                POLICY.lease(),
                POLICY.retention(),
                true);
        return ((ClaimResult.Claimed) memory.claim(request)).claim();
    }

    private Lease lease(Claim claim) {
        return lease(claim, POLICY);
    }

    private Lease lease(Claim claim, IdempotencePolicy policy) {
        return new Lease(storage, events, IdempotenceId.of("any"), claim, policy.lease(), System.nanoTime());
    }

    private Lease abandoned(String id) {
        Lease lease = lease(claim(id));
        await().until(() -> memory.find(key(id)).orElseThrow().state() == State.ABANDONED);
        return lease;
    }

    @Test
    @DisplayName("T9: the start of leases of the shortest kind does not put off the renewal of others")
    void manyShortLeasesDoNotPutOffRenewals() {
        Lease renewed = lease(claim("order-1"));
        leases.started(renewed);
        long first = renewed.renewedAt();
        IdempotencePolicy shortest =
                IdempotencePolicy.builder().lease(Duration.ofMillis(10)).build();
        Lease other = lease(claim("order-2"), shortest);
        await().until(() -> {
            for (int i = 0; i < 200 && renewed.renewedAt() == first; i++) {
                leases.started(other);
                leases.ended(other);
                LockSupport.parkNanos(500_000);
            }
            return renewed.renewedAt() != first;
        });
    }

    @Test
    void checksAreAsFrequentAsTheShortestLeaseThatStillRunsNeeds() {
        Lease shortest = lease(
                claim("order-1"),
                IdempotencePolicy.builder().lease(Duration.ofMillis(10)).build());
        Lease longer = lease(claim("order-2"), IdempotencePolicy.defaults());
        leases.started(longer);
        for (int round = 0; round < 20; round++) {
            leases.started(shortest);
            assertThat(leases.tick()).isEqualTo(Duration.ofMillis(2));
            leases.ended(shortest);
            await().until(() -> leases.tick().equals(Duration.ofSeconds(1)));
        }
    }

    @Test
    @DisplayName("P2: a late owner that begins after its successor does not take its place among the renewed")
    void aLateOwnerThatBeginsLateDoesNotStopTheRenewalOfItsSuccessor() {
        Lease late = abandoned("order-1");
        Lease successor = lease(claim("order-1"));
        leases.started(successor);
        leases.started(late);

        Set<Long> renewedAt = new HashSet<>();
        await().until(() -> renewedAt.add(successor.renewedAt()) && renewedAt.size() > 5);

        // A busy machine may renew it late, and then does so again.
        await().until(() -> memory.find(key("order-1")).orElseThrow().state() == State.IN_PROGRESS);
        assertThat(memory.find(key("order-1")).orElseThrow().fence()).isEqualTo(2);
        assertThat(leases.isRunning(key("order-1"))).isTrue();
        leases.ended(late);
        leases.ended(late);
        assertThat(leases.isRunning(key("order-1"))).isTrue();
        leases.ended(successor);
        assertThat(leases.isRunning(key("order-1"))).isFalse();
    }

    @Test
    @DisplayName(
            "T14: an owner whose write reported that it was overtaken stays overtaken, however long its lease would be")
    void anOwnerThatWasOvertakenDoesNotThinkThatItHoldsItsClaim() {
        Lease late = lease(claim("order-1"), IdempotencePolicy.defaults());
        leases.renew(late);
        assertThat(late.mayBeOver()).isFalse();
        leases.started(late);
        memory.delete(key("order-1"));
        claim("order-1");

        leases.renew(late);

        assertThat(late.mayBeOver()).isTrue();
        assertThat(leases.isRunning(key("order-1"))).isFalse();
    }

    @Test
    void aProcessThatEndsIsNotKeptByItsRenewals() {
        AtomicReference<Boolean> daemon = new AtomicReference<>();
        storage.before((call, key) -> daemon.set(Thread.currentThread().isDaemon()));
        leases.started(lease(claim("order-1")));
        await().until(() -> daemon.get() != null);
        assertThat(daemon).hasValue(true);
    }

    @Test
    @DisplayName("T9: a renewal whose failure cannot even be logged is retried")
    void aRenewalWhoseFailureCannotBeLoggedIsRetried() {
        AtomicInteger refused = new AtomicInteger();
        TurboFilter brokenLog = new TurboFilter() {
            @Override
            public FilterReply decide(
                    Marker marker, Logger logger, Level level, String format, Object[] params, Throwable thrown) {
                if (Thread.currentThread().getName().equals("idempotence-renewals")) {
                    refused.incrementAndGet();
                    throw new IllegalStateException("the log is broken");
                }
                return FilterReply.NEUTRAL;
            }
        };
        LoggerContext logs = (LoggerContext) LoggerFactory.getILoggerFactory();
        storage.withoutRenewals();
        logs.addTurboFilter(brokenLog);
        try {
            leases.started(lease(claim("order-1")));
            await().dontCatchUncaughtExceptions().until(() -> refused.get() > AT_ONCE);
        } finally {
            logs.getTurboFilterList().remove(brokenLog);
        }
    }

    @Test
    @DisplayName("T9: of those whose renewal fails, the one that waits longest is tried next")
    void noneInTroubleIsTriedTwiceWhileAnotherOneWaits() {
        List<Lease> all = twelveInTrouble();
        for (int number = AT_ONCE; number < all.size(); number++) {
            int hanging = number;
            // Every lease would be renewed in the end: only the order shows which one is next.
            await().until(() ->
                    tried.size() == hanging && all.stream().filter(this::isDue).count() == all.size());
            goOn.release();
        }
        await().until(() -> tried.size() == all.size());
        assertThat(tried).doesNotHaveDuplicates();
    }

    @Test
    @DisplayName("T9: a renewal whose execution ends while it waits for others takes nobody's turn")
    void aRenewalWhoseExecutionHasEndedIsNotTried() {
        List<Lease> all = twelveInTrouble();
        await().until(() -> tried.size() == AT_ONCE && all.stream().allMatch(LeasesTest::isBegun));
        all.forEach(leases::ended);
        goOn.release(all.size());
        await().until(() -> all.stream().noneMatch(LeasesTest::isBegun));
        assertThat(tried).hasSize(AT_ONCE);
    }

    /** Leases whose renewals have failed once. Each further one fails when it may {@link #goOn}. */
    private List<Lease> twelveInTrouble() {
        storage.withoutRenewals();
        List<Lease> all = new ArrayList<>();
        IntStream.range(0, 12).forEach(i -> all.add(lease(claim("order-" + i))));
        all.forEach(leases::started);
        await().until(() -> all.stream().allMatch(Lease::isRenewalInTrouble));

        storage.before((call, key) -> {
            if (call == Call.RENEW) {
                tried.add(key);
                goOn.acquireUninterruptibly();
                throw new StorageUnavailableException("still in trouble", null);
            }
        });
        return all;
    }

    /** Whether a renewal waits for its turn, or runs. */
    private static boolean isBegun(Lease lease) {
        boolean isBegun = !lease.beginRenewal();
        if (!isBegun) {
            lease.endRenewal();
        }
        return isBegun;
    }

    @Test
    @DisplayName("T9: renewals that go on while the next ones are planned do not disturb the plan")
    void theOrderIsOfOneMomentAlthoughRenewalsGoOn() {
        List<Lease> all = new ArrayList<>();
        IntStream.range(0, 500).forEach(i -> all.add(lease(claim("order-" + i))));
        AtomicBoolean over = new AtomicBoolean();
        CompletableFuture<Void> renewals = CompletableFuture.runAsync(() -> {
            while (!over.get()) {
                all.get(ThreadLocalRandom.current().nextInt(all.size()))
                        .renewalFailed(new IllegalStateException("for the test"));
            }
        });
        try {
            for (int look = 0; look < 500; look++) {
                assertThat(Leases.longestAgoFirst(all)).hasSameSizeAs(all);
            }
        } finally {
            over.set(true);
            renewals.join();
        }
    }

    private boolean isDue(Lease lease) {
        return lease.isRenewalDue(System.nanoTime());
    }
}
