package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The databases and memory are implementations of one state machine: whatever happens to an ID, all say the same. */
class JdbcAgainstMemoryTest {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final Duration BRIEF = Duration.ofMillis(1);
    private static final Fingerprint[] FINGERPRINTS = {Fingerprint.NONE, Fingerprint.of(filled(1))};
    private static final Owner[] OWNERS = {new Owner(1, 1), new Owner(2, 2), new Owner(-1, -1)};

    @ParameterizedTest
    @EnumSource
    void randomHistoriesHaveTheSameAnswers(Databases databases) {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        MovingClock clock = new MovingClock();
        try (JdbcIdempotenceStorage inDatabase = JdbcIdempotenceStorage.builder(databases.pool())
                        .createIfMissing()
                        .build();
                IdempotenceStorage inMemory = IdempotenceStorage.inMemory(10_000, clock)) {
            for (int history = 0; history < 25; history++) {
                StorageKey key = Claims.newKey();
                List<String> steps = new ArrayList<>();
                for (int step = 0; step < 25; step++) {
                    int op = random.nextInt(100);
                    long fence = inMemory.find(key).map(found -> found.fence()).orElse(1L);
                    Claim claim = new Claim(
                            key,
                            FINGERPRINTS[random.nextInt(20) == 0 ? 1 : 0],
                            OWNERS[random.nextInt(OWNERS.length)],
                            Math.max(1, fence - random.nextInt(3) / 2));
                    boolean takeOver = random.nextBoolean();
                    byte[] bytes = {(byte) step, (byte) history};
                    Function<IdempotenceStorage, Object> call;
                    boolean wait = false;
                    if (op < 45) {
                        call = storage -> storage.claim(
                                new ClaimRequest(key, claim.fingerprint(), claim.owner(), LONG, RETENTION, takeOver));
                    } else if (op < 51) {
                        call = storage -> storage.complete(claim, bytes, RETENTION);
                    } else if (op < 66) {
                        call = storage -> storage.release(claim, RETENTION);
                    } else if (op < 69) {
                        call = storage -> storage.markUnknown(claim, RETENTION);
                    } else if (op < 76) {
                        call = storage -> storage.renew(claim, LONG);
                    } else if (op < 92) {
                        call = storage -> storage.renew(claim, BRIEF);
                        wait = true;
                    } else if (op < 95) {
                        call = storage -> storage.complete(claim, bytes, BRIEF);
                        wait = true;
                    } else if (op < 97) {
                        call = storage -> storage.release(claim, BRIEF);
                        wait = true;
                    } else {
                        call = storage -> storage.delete(key);
                    }
                    String said = said(call.apply(inMemory));
                    steps.add(op + " " + claim + " " + takeOver + " -> " + said);
                    assertThat(said(call.apply(inDatabase)))
                            .as("seed %s, %s", seed, steps)
                            .isEqualTo(said);
                    if (wait) {
                        clock.advance(BRIEF.multipliedBy(2));
                        databases.letPass(BRIEF);
                    }
                    assertThat(state(inDatabase, key))
                            .as("seed %s, %s", seed, steps)
                            .isEqualTo(state(inMemory, key));
                }
            }
        }
    }

    private static String state(IdempotenceStorage storage, StorageKey key) {
        return storage.find(key)
                .map(found -> found.state() + " " + found.fence())
                .orElse("none");
    }

    private static String said(Object answer) {
        if (answer instanceof ClaimResult.InProgress) {
            return "InProgress";
        }
        if (answer instanceof ClaimResult.Completed completed) {
            return "Completed " + Arrays.toString(completed.result());
        }
        if (answer instanceof WriteResult.Fenced fenced) {
            return "Fenced " + Arrays.toString(fenced.result());
        }
        if (answer instanceof ClaimResult.Claimed claimed) {
            Owner owner = claimed.claim().owner();
            return "Claimed " + owner.high() + " " + claimed.claim().fence() + " " + claimed.takenOver();
        }
        return answer.toString();
    }

    private static byte[] filled(int value) {
        byte[] bytes = new byte[Fingerprint.BYTES];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }
}
