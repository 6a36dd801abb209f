package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.WriteResult;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The records in Redis: their layout, their time to live, and what they cost. */
@Tag("redis-7")
class RedisRecordTest extends RedisTestBase {
    @Test
    void completedRecordWithAHundredBytesCostsAtMostThreeHundred() {
        assertThat(key.value()).matches("idem:payments:.{43}");
        Claim claim = Claims.claim(storage, key);
        storage.complete(claim, new byte[90], Claims.RETENTION);
        storage.delete(key);
        storage.complete(claim, new byte[100], Claims.RETENTION);

        assertThat(jedis.memoryUsage(rawKey)).isLessThanOrEqualTo(300);
    }

    @Test
    void oneKeyPerIdWithTheRetentionAsItsTimeToLive() {
        jedis.flushAll();
        Claim claim = Claims.claim(storage, key);
        assertThat(jedis.keys("*")).containsExactly(key.value());
        assertThat(jedis.pttl(rawKey)).isBetween(Claims.RETENTION.toMillis() - 10_000, Claims.RETENTION.toMillis());

        storage.complete(claim, new byte[1], Claims.RETENTION.multipliedBy(2));
        assertThat(jedis.keys("*")).containsExactly(key.value());
        assertThat(jedis.pttl(rawKey)).isGreaterThan(Claims.RETENTION.toMillis() + 10_000);
    }

    @Test
    void firstRequestCostsOneCommandToClaimAndTwoToComplete() {
        storage.complete(Claims.claim(storage, Claims.newKey()), new byte[1], Claims.RETENTION);
        jedis.configResetStat();

        Claim claim = Claims.claim(storage, key);
        assertThat(commandsInScripts()).containsExactly("set:calls=1");
        jedis.configResetStat();
        storage.complete(claim, new byte[100], Claims.RETENTION);
        assertThat(commandsInScripts()).containsExactlyInAnyOrder("get:calls=1", "set:calls=1");
    }

    /** From Redis 7.2 on, {@code WAIT} does not wait for what other connections have written. */
    @Test
    void endThatIsRepeatedIsAWrite() {
        for (Function<Claim, WriteResult> end : List.<Function<Claim, WriteResult>>of(
                claim -> storage.complete(claim, new byte[1], Claims.RETENTION),
                claim -> storage.completeProvisionally(claim, new byte[1], Claims.RETENTION),
                claim -> storage.release(claim, Claims.RETENTION),
                claim -> storage.markUnknown(claim, Claims.RETENTION))) {
            Claim claim = Claims.claim(storage, Claims.newKey());
            WriteResult first = end.apply(claim);
            long writes = writes();
            assertThat(end.apply(claim)).isEqualTo(first);
            assertThat(writes()).isGreaterThan(writes);
        }
    }

    private static long writes() {
        return jedis.info("persistence")
                .lines()
                .filter(line -> line.startsWith("rdb_changes_since_last_save:"))
                .mapToLong(line -> Long.parseLong(line.substring(line.indexOf(':') + 1)))
                .findFirst()
                .orElseThrow();
    }

    private static List<String> commandsInScripts() {
        return jedis.info("commandstats")
                .lines()
                .filter(line -> line.startsWith("cmdstat_"))
                .map(line -> line.substring("cmdstat_".length(), line.indexOf(',')))
                .filter(call -> !call.matches("(evalsha|echo|config|info)\\b.*"))
                .toList();
    }

    @Test
    void scriptsForgottenByTheServerAreSentAgain() {
        Claim claim = Claims.claim(storage, key);
        jedis.scriptFlush();
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        jedis.scriptFlush();
        assertThat(storage.complete(claim, new byte[3], Claims.RETENTION)).isEqualTo(new WriteResult.Done());
        jedis.scriptFlush();
        assertThat(storage.find(key)).isPresent();
    }

    @Test
    void whatCannotBeReadIsReportedAndLeftAsItIs() {
        Map<String, byte[]> values = new LinkedHashMap<>();
        values.put("empty", new byte[0]);
        values.put("text", "hello".getBytes(StandardCharsets.US_ASCII));
        values.put("one byte", new byte[] {1});
        values.put("too short", Arrays.copyOf(header('C'), 53));
        values.put("unknown state", header('X'));
        values.put("a claim without lease", header('P'));
        values.put("a claim with half a lease", Arrays.copyOf(header('P'), 58));
        values.put("a claim with more than a lease", Arrays.copyOf(header('T'), 63));
        values.put("a release with something behind", Arrays.copyOf(header('R'), 55));
        values.put("an unknown with something behind", Arrays.copyOf(header('U'), 63));
        byte[] newer = header('C');
        newer[0] = 3;
        values.put("a newer format", newer);
        byte[] format0 = header('C');
        format0[0] = 0;
        values.put("format 0", format0);

        values.forEach((name, value) -> {
            jedis.set(rawKey, value);
            for (ThrowingCallable call : everyCall()) {
                assertThatThrownBy(call)
                        .as(name)
                        .isInstanceOf(CorruptRecordException.class)
                        .hasMessageNotContaining(key.value());
            }
            assertThat(jedis.get(rawKey)).as(name).isEqualTo(value);
            assertThat(jedis.pttl(rawKey)).as(name).isEqualTo(-1);
            assertThat(storage.deleteUnchanged(key, null)).as(name).isTrue();
            jedis.set(rawKey, value);
        });
        assertThat(storage.delete(key)).isTrue();
        assertThat(Claims.claim(storage, key).fence()).isEqualTo(1);
    }

    @Test
    void newerFormatIsNamed() {
        byte[] newer = header('C');
        newer[0] = 7;
        jedis.set(rawKey, newer);
        for (ThrowingCallable call : everyCall()) {
            assertThatThrownBy(call).hasMessageContaining("format is 7, this version reads 2");
        }
    }

    @Test
    void keyOfAnotherTypeIsReportedAndLeftAsItIs() {
        jedis.hset(key.value(), "field", "value");
        for (ThrowingCallable call : everyCall()) {
            assertThatThrownBy(call).isInstanceOf(CorruptRecordException.class).hasMessageContaining("not a string");
        }
        assertThat(jedis.hgetAll(key.value())).isEqualTo(Map.of("field", "value"));
        assertThat(storage.deleteUnchanged(key, null)).isTrue();
    }

    @Test
    void recordThatAnOperatorMadeToLiveForEverStaysSoWhenItIsRenewed() {
        Claim claim = Claims.claim(storage, key);
        jedis.persist(rawKey);

        assertThat(storage.renew(claim, Claims.LEASE)).isEqualTo(new WriteResult.Done());
        assertThat(jedis.pttl(rawKey)).isEqualTo(-1);
        assertThat(storage.find(key).orElseThrow().retentionLeft()).isGreaterThan(Claims.RETENTION);
    }

    @Test
    void recordThatAnOperatorMadeToLiveForEverStaysSoWhenItIsResolved() {
        for (Resolution resolution : Resolution.values()) {
            storage.delete(key);
            storage.markUnknown(Claims.claim(storage, key), Claims.RETENTION);
            jedis.persist(rawKey);

            assertThat(storage.resolve(key, 1, resolution, Claims.RETENTION)).isTrue();
            assertThat(jedis.pttl(rawKey)).isEqualTo(-1);
        }
    }

    /** Its age can no longer be found out, and its owner may live. */
    @Test
    void claimThatAnOperatorMadeToLiveForEverIsNeverTakenOver() {
        ClaimRequest shortLived =
                new ClaimRequest(key, Fingerprint.NONE, new Owner(1, 2), Duration.ofMillis(1), Claims.RETENTION, false);
        Claim claim = ((ClaimResult.Claimed) storage.claim(shortLived)).claim();
        await().until(() -> storage.find(key).orElseThrow().state() == State.ABANDONED);
        jedis.persist(rawKey);

        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.IN_PROGRESS);
        assertThat(storage.claim(
                        new ClaimRequest(key, Fingerprint.NONE, new Owner(3, 4), Claims.LEASE, Claims.RETENTION, true)))
                .isInstanceOf(ClaimResult.InProgress.class);
        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, Claims.RETENTION))
                .isFalse();
        assertThat(storage.complete(claim, new byte[1], Claims.RETENTION)).isEqualTo(new WriteResult.Done());
    }

    @Test
    void claimWhoseTimeToLiveAnOperatorCutCountsAsAbandoned() {
        Claims.claim(storage, key);
        jedis.pexpire(rawKey, Claims.RETENTION.minus(Claims.LEASE).toMillis());

        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.ABANDONED);
        assertThat(storage.claim(new ClaimRequest(
                        key, Fingerprint.NONE, new Owner(3, 4), Claims.LEASE, Claims.RETENTION, false)))
                .isEqualTo(new ClaimResult.Abandoned(1));
    }

    @Test
    void renewedLeaseMayBeLongerThanWhatTheRecordHadToLive() {
        Claim claim = Claims.claim(storage, key);
        jedis.pexpire(rawKey, 5_000);

        assertThat(storage.renew(claim, Duration.ofMinutes(10))).isEqualTo(new WriteResult.Done());
        assertThat(jedis.pttl(rawKey)).isGreaterThan(500_000);
        assertThat(storage.find(key).orElseThrow().leaseLeft()).isGreaterThan(Duration.ofMinutes(9));
    }

    @Test
    void layoutOfFormatTwoNeverChanges() {
        byte[] value = Arrays.copyOf(header('C'), 57);
        value[54] = 'a';
        value[55] = 0;
        value[56] = (byte) 0xff;
        jedis.set(rawKey, value);

        assertThat(storage.claim(Claims.request(key)))
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).containsExactly('a', 0, 0xff));
        assertThat(storage.find(key).orElseThrow().fence()).isEqualTo(0x80000001L);

        storage.delete(key);
        Owner owner = new Owner(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
        storage.complete(
                new Claim(key, Fingerprint.NONE, owner, 0x80000001L), new byte[] {'a', 0, -1}, Claims.RETENTION);
        assertThat(jedis.get(rawKey)).isEqualTo(value);
    }

    private List<ThrowingCallable> everyCall() {
        Claim claim = new Claim(key, Fingerprint.NONE, new Owner(1, 2), 1);
        IdempotenceRecord seen =
                new IdempotenceRecord(key, State.RELEASED, 1, claim.owner(), Duration.ZERO, Claims.RETENTION);
        return List.of(
                () -> storage.claim(Claims.request(key)),
                () -> storage.complete(claim, new byte[4], Claims.RETENTION),
                () -> storage.release(claim, Claims.RETENTION),
                () -> storage.markUnknown(claim, Claims.RETENTION),
                () -> storage.renew(claim, Claims.LEASE),
                () -> storage.deleteUnchanged(key, seen),
                () -> storage.find(key));
    }

    private static byte[] header(char state) {
        return ByteBuffer.allocate(54)
                .put((byte) 2)
                .put((byte) state)
                .putInt(0x80000001)
                .putLong(0x0102030405060708L)
                .putLong(0x090a0b0c0d0e0f10L)
                .put(Fingerprint.NONE.toBytes())
                .array();
    }
}
