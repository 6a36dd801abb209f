package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
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
import org.junit.jupiter.api.Test;

/** Redis and memory are two implementations of one state machine: whatever happens to an ID, both say the same. */
class RedisAgainstMemoryTest {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final Fingerprint[] FINGERPRINTS = {Fingerprint.NONE, Fingerprint.of(filled(1))};
    private static final Owner[] OWNERS = {new Owner(1, 1), new Owner(2, 2), new Owner(-1, -1)};

    @Test
    void randomHistoriesHaveTheSameAnswers() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        MovingClock clock = new MovingClock();
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                IdempotenceStorage inRedis = RedisIdempotenceStorage.connect(redis.address());
                IdempotenceStorage inMemory = IdempotenceStorage.inMemory(10_000, clock)) {
            for (int history = 0; history < 100; history++) {
                StorageKey key = Claims.newKey();
                List<String> steps = new ArrayList<>();
                long lastFence = 0;
                String result = null;
                for (int step = 0; step < 25; step++) {
                    int op = random.nextInt(100);
                    Claim claim = new Claim(
                            key,
                            FINGERPRINTS[random.nextInt(20) == 0 ? 1 : 0],
                            OWNERS[random.nextInt(OWNERS.length)],
                            Math.max(1, lastFence - random.nextInt(3) / 2));
                    boolean takeOver = random.nextBoolean();
                    byte[] bytes = {(byte) step, (byte) history};
                    boolean delete = op >= 97;
                    Function<IdempotenceStorage, Object> call;
                    if (op < 40) {
                        call = storage -> storage.claim(
                                new ClaimRequest(key, claim.fingerprint(), claim.owner(), LONG, RETENTION, takeOver));
                    } else if (op < 52) {
                        call = storage -> storage.complete(claim, bytes, RETENTION);
                    } else if (op < 67) {
                        call = storage -> storage.release(claim, RETENTION);
                    } else if (op < 70) {
                        call = storage -> storage.markUnknown(claim, RETENTION);
                    } else if (op < 77) {
                        call = storage -> storage.renew(claim, LONG);
                    } else if (op < 97) {
                        call = storage -> storage.renew(claim, Duration.ofMillis(1));
                    } else {
                        call = storage -> storage.delete(key);
                    }
                    String said = said(call.apply(inMemory));
                    steps.add(op + " " + claim + " " + takeOver + " -> " + said);
                    assertThat(said(call.apply(inRedis)))
                            .as("seed %s, %s", seed, steps)
                            .isEqualTo(said);
                    if (op >= 77 && op < 97) {
                        clock.advance(Duration.ofMillis(2));
                        ServerTime.letPass(redis, Duration.ofMillis(1));
                    }
                    String state = state(inMemory, key);
                    assertThat(state(inRedis, key))
                            .as("seed %s, %s", seed, steps)
                            .isEqualTo(state);

                    long fence = inMemory.find(key).map(found -> found.fence()).orElse(0L);
                    if (!delete && lastFence > 0 && fence > 0) {
                        assertThat(fence).as("seed %s, %s", seed, steps).isGreaterThanOrEqualTo(lastFence);
                    }
                    if (delete) {
                        result = null;
                    } else if (said.startsWith("Completed")) {
                        assertThat(said).as("seed %s, %s", seed, steps).isIn(result == null ? said : result);
                        result = said;
                    }
                    lastFence = fence;
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
