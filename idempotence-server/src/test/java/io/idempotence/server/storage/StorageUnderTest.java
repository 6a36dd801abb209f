package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/** The storage that a contract tests, an ID in it, and helpers for the tests. */
interface StorageUnderTest {
    Duration LONG = Duration.ofMinutes(10);
    Duration RETENTION = Duration.ofHours(1);
    Duration SHORT = Duration.ofMillis(60);

    SecureRandom RANDOM = new SecureRandom();
    Fingerprint PAY = fingerprint(1);
    Fingerprint OTHER = fingerprint(2);
    byte[] RESULT = "201 Created".getBytes(StandardCharsets.UTF_8);
    byte[] OTHER_RESULT = "500 Oops".getBytes(StandardCharsets.UTF_8);

    IdempotenceStorage storage();

    /** The ID that a test works with. */
    StorageKey key();

    /** Works with another ID from here on. */
    void use(StorageKey key);

    /** Returns when the storage's own clock has gone on by at least {@code duration}. */
    void passTime(Duration duration);

    default void assertKeyReused(Owner formerOwner) {
        Optional<IdempotenceRecord> before = storage().find(key());
        for (Owner owner : List.of(newOwner(), formerOwner)) {
            ClaimResult result = storage().claim(new ClaimRequest(key(), OTHER, owner, LONG, RETENTION, true));
            assertThat(result).isEqualTo(new ClaimResult.KeyReused());
        }
        assertThat(storage().find(key()).map(IdempotenceRecord::state)).isEqualTo(before.map(IdempotenceRecord::state));
        assertThat(storage().find(key()).map(IdempotenceRecord::fence)).isEqualTo(before.map(IdempotenceRecord::fence));
    }

    default StorageKey newKey() {
        return StorageKey.of(
                "contract", "", "", new IdempotenceId(UUID.randomUUID().toString()));
    }

    default Owner newOwner() {
        return Owner.random(RANDOM);
    }

    private static Fingerprint fingerprint(int seed) {
        byte[] bytes = new byte[Fingerprint.BYTES];
        Arrays.fill(bytes, (byte) seed);
        return Fingerprint.of(bytes);
    }

    default ClaimRequest request(Owner owner, Duration lease) {
        return new ClaimRequest(key(), PAY, owner, lease, RETENTION, false);
    }

    default ClaimRequest takeOver(Owner owner, Duration lease) {
        return new ClaimRequest(key(), PAY, owner, lease, RETENTION, true);
    }

    default Claim claim(Duration lease) {
        return claimed(storage().claim(request(newOwner(), lease)));
    }

    default Claim claimed(ClaimResult result) {
        assertThat(result).isInstanceOf(ClaimResult.Claimed.class);
        return ((ClaimResult.Claimed) result).claim();
    }

    default Claim stranger() {
        return new Claim(key(), PAY, newOwner(), 1);
    }

    default Claim withFence(Claim claim, long fence) {
        return new Claim(claim.key(), claim.fingerprint(), claim.owner(), fence);
    }

    default void assertState(State state, long fence) {
        IdempotenceRecord found = storage().find(key()).orElseThrow();
        assertThat(found.state()).isEqualTo(state);
        assertThat(found.fence()).isEqualTo(fence);
        assertThat(found.retentionLeft()).isPositive();
        if (state == State.COMPLETED || state == State.RELEASED) {
            assertThat(found.leaseLeft()).isZero();
        }
    }

    default void assertReplays(byte[] result) {
        assertCompleted(storage().claim(request(newOwner(), LONG)), result);
        assertCompleted(storage().claim(takeOver(newOwner(), LONG)), result);
    }

    default void assertCompleted(ClaimResult result, byte[] expected) {
        assertThat(result)
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).isEqualTo(expected));
    }

    default void assertFenced(WriteResult result, byte[] expected) {
        assertThat(result)
                .isInstanceOfSatisfying(
                        WriteResult.Fenced.class,
                        fenced -> assertThat(fenced.result()).isEqualTo(expected));
    }
}
