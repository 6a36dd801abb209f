package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

class InMemoryIdempotenceStorageTest extends IdempotenceStorageContract {
    private static final Duration LEASE = Duration.ofSeconds(10);
    private static final Duration RETENTION = Duration.ofMinutes(10);

    private final MovingClock clock = new MovingClock();
    private final SecureRandom random = new SecureRandom();

    @Override
    protected IdempotenceStorage createStorage() {
        return IdempotenceStorage.inMemory(1_000, clock);
    }

    @Override
    protected void letPass(Duration duration) {
        clock.advance(duration);
    }

    @Test
    void fullStorageRefusesANewIdAndKeepsTheOldOnes() {
        IdempotenceStorage full = IdempotenceStorage.inMemory(2, clock);
        Claim first = claim(full, 1, RETENTION);
        claim(full, 2, RETENTION);

        assertThatThrownBy(() -> claim(full, 3, RETENTION))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("full of 2 live records");
        assertThat(full.find(key(3))).isEmpty();
        assertThat(full.complete(first, new byte[1], RETENTION)).isEqualTo(new WriteResult.Done());
        assertThat(full.claim(request(1, RETENTION))).isInstanceOf(ClaimResult.Completed.class);
        assertThat(full.claim(request(2, RETENTION))).isInstanceOf(ClaimResult.InProgress.class);
    }

    @Test
    void fullStorageTakesANewIdAsSoonAsOneRecordExpired() {
        IdempotenceStorage full = IdempotenceStorage.inMemory(50, clock);
        for (int id = 0; id < 50; id++) {
            claim(full, id, id == 37 ? LEASE : RETENTION);
        }
        clock.advance(LEASE.minusMillis(1));
        assertThatThrownBy(() -> claim(full, 100, RETENTION)).isInstanceOf(StorageUnavailableException.class);
        clock.advance(Duration.ofMillis(1));

        assertThat(claim(full, 100, RETENTION).fence()).isEqualTo(1);
        assertThatThrownBy(() -> claim(full, 101, RETENTION)).isInstanceOf(StorageUnavailableException.class);
    }

    @Test
    void shortenedRetentionMakesRoomInAFullStorage() {
        IdempotenceStorage full = IdempotenceStorage.inMemory(2, clock);
        Claim first = claim(full, 1, RETENTION);
        claim(full, 2, RETENTION);
        assertThatThrownBy(() -> claim(full, 3, RETENTION)).isInstanceOf(StorageUnavailableException.class);
        full.complete(first, new byte[1], LEASE);
        clock.advance(LEASE);

        assertThat(claim(full, 3, RETENTION).fence()).isEqualTo(1);
    }

    @Test
    void deletedRecordMakesRoomInAFullStorage() {
        IdempotenceStorage full = IdempotenceStorage.inMemory(1, clock);
        for (int id = 0; id < 10; id++) {
            claim(full, id, RETENTION);
            assertThat(full.delete(key(id))).isTrue();
        }
    }

    @Test
    void manyIdsOverTimeFitIntoRoomForAThousand() {
        IdempotenceStorage small = IdempotenceStorage.inMemory(1_000, clock);
        for (int id = 0; id < 200_000; id++) {
            claim(small, id, LEASE);
            if (id % 900 == 0) {
                clock.advance(LEASE);
            }
        }
    }

    @Test
    void claimAndDeleteOfOneIdForEverLeavesNothingBehind() {
        InMemoryIdempotenceStorage storage = new InMemoryIdempotenceStorage(10, 1 << 20, clock);
        for (int round = 0; round < 10_000; round++) {
            claim(storage, 1, RETENTION);
            storage.delete(key(1));
        }
        assertThat(storage.queueLength()).isLessThan(10);
    }

    @Test
    void whatExpiredLeavesTwiceAsFastAsNewOnesComeAndWhatLivesStays() {
        InMemoryIdempotenceStorage storage = new InMemoryIdempotenceStorage(10_000, 64 << 20, clock);
        for (int id = 0; id < 100; id++) {
            claim(storage, id, LEASE);
        }
        assertThat(storage.queueLength()).isEqualTo(100);
        clock.advance(LEASE);
        for (int id = 100; id < 150; id++) {
            claim(storage, id, RETENTION);
        }
        assertThat(storage.queueLength()).isEqualTo(50);
        assertThat(storage.list("memory")).hasSize(50);
    }

    @Test
    void resultsAreBoundedByTheirBytesAndNothingRunsTwiceForIt() {
        int room = 8 << 20;
        InMemoryIdempotenceStorage storage = new InMemoryIdempotenceStorage(1_000, room, clock);
        int refused = 0;
        int kept = 0;
        int running = 20;
        List<Claim> claims = new ArrayList<>();
        for (int id = 0; id < running; id++) {
            claims.add(claim(storage, id, RETENTION));
        }
        for (int id = 0; id < 59; id++) {
            if (id >= running) {
                try {
                    claims.add(claim(storage, id, RETENTION));
                } catch (StorageUnavailableException e) {
                    assertThat(e.certainty()).isEqualTo(StorageUnavailableException.Certainty.REFUSED);
                    refused++;
                    continue;
                }
            }
            assertThat(storage.complete(claims.get(id), new byte[1 << 20], RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertThat(storage.bytes()).isLessThanOrEqualTo(room + running);
        }
        for (Claim claim : claims) {
            byte[] result = ((ClaimResult.Completed) storage.claim(new ClaimRequest(
                            claim.key(), Fingerprint.NONE, Owner.random(random), LEASE, RETENTION, true)))
                    .result();
            kept += result.length == 1 << 20 ? 1 : 0;
            assertThat(result.length == 1 << 20 || Arrays.equals(result, ClaimResult.noResult()))
                    .isTrue();
        }
        assertThat(kept).isEqualTo(7);
        assertThat(refused).isEqualTo(59 - running);
    }

    @Test
    void bytesAreGivenBackHoweverARecordGoes() {
        InMemoryIdempotenceStorage storage = new InMemoryIdempotenceStorage(1_000, 1 << 20, clock);
        for (int round = 0; round < 100; round++) {
            Claim claim = claim(storage, 1, RETENTION);
            storage.completeProvisionally(claim, new byte[100_000], RETENTION);
            storage.complete(claim, new byte[200_000], RETENTION);
            storage.complete(claim(storage, 2, RETENTION), new byte[500_000], LEASE);
            storage.release(claim(storage, 3, RETENTION), LEASE);
            assertThat(storage.bytes()).isEqualTo(700_000 + 3 * InMemoryIdempotenceStorage.BYTES_PER_RECORD);
            storage.delete(key(1));
            clock.advance(LEASE);
            claim(storage, 2, LEASE);
            claim(storage, 3, LEASE);
            storage.delete(key(2));
            storage.delete(key(3));
            assertThat(storage.bytes()).isZero();
        }
    }

    @Test
    void expiredResultsMakeRoomForNewOnes() {
        InMemoryIdempotenceStorage storage = new InMemoryIdempotenceStorage(1_000, 1 << 20, clock);
        for (int id = 0; id < 200; id += 2) {
            storage.complete(claim(storage, id, RETENTION), new byte[800_000], LEASE);
            clock.advance(LEASE);
        }
        byte[] large = new byte[800_000];
        storage.complete(claim(storage, 201, RETENTION), large, RETENTION);
        assertThat(((ClaimResult.Completed) storage.claim(request(201, RETENTION))).result())
                .isEqualTo(large);
    }

    @Test
    void defaultStorageHasItsOwnClock() {
        IdempotenceStorage storage = IdempotenceStorage.inMemory();
        claim(storage, 1, RETENTION);

        assertThat(storage.find(key(1)).orElseThrow().leaseLeft()).isBetween(Duration.ofSeconds(1), LEASE);
    }

    @Test
    void roomForNoRecordIsRefused() {
        assertThatThrownBy(() -> IdempotenceStorage.inMemory(0, clock))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("got 0");
    }

    private Claim claim(IdempotenceStorage storage, int id, Duration retention) {
        return ((ClaimResult.Claimed) storage.claim(request(id, retention))).claim();
    }

    private ClaimRequest request(int id, Duration retention) {
        return new ClaimRequest(key(id), Fingerprint.NONE, Owner.random(random), LEASE, retention, false);
    }

    private static StorageKey key(int id) {
        return StorageKey.of("memory", "", "", new IdempotenceId("id-" + id));
    }

    @Test
    void aLookThatIsOvertakenByARenewalDoesNotMissTheRecord() throws InterruptedException {
        MovingClock time = new MovingClock();
        IdempotenceStorage shared = IdempotenceStorage.inMemory(1, time);
        StorageKey key = StorageKey.of("a", "", "", IdempotenceId.of("id"));
        Duration minute = Duration.ofMinutes(1);
        Claim claim = ((ClaimResult.Claimed)
                        shared.claim(new ClaimRequest(key, Fingerprint.NONE, new Owner(1, 1), minute, minute, false)))
                .claim();

        Thread renewal = new Thread(() -> {
            shared.renew(claim, minute.multipliedBy(3));
            time.advance(minute.multipliedBy(2));
        });
        time.whenAsked(() -> {
            time.whenAsked(() -> {});
            renewal.start();
            Awaitility.await()
                    .until(renewal::getState, Set.of(Thread.State.BLOCKED, Thread.State.TERMINATED)::contains);
        });

        assertThat(shared.find(key)).isPresent();
        renewal.join();
    }
}
