package io.idempotence.server.redis;

import io.idempotence.internal.Millis;
import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.redis.internal.Redis.ScannedKey;
import io.idempotence.server.redis.internal.Redis.TooFewReplicasException;
import io.idempotence.server.redis.internal.RedisErrors;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The records in Redis: each call is one script on the record's key. No driver is named here, so that this class can be loaded and
 * inspected by reflection without Jedis.
 */
class RedisRecords implements IdempotenceStorage {
    private static final LuaScript CLAIM = LuaScript.load("claim.lua", Long.class, byte[].class);
    private static final LuaScript WRITE = LuaScript.load("write.lua", Long.class);
    /**
     * Not repeated here after a lost reply: if another claim came in between, the owner would seem overtaken. The caller repeats it and
     * takes the lost reply into account.
     */
    private static final LuaScript RELEASE = LuaScript.loadUnrepeatable("write.lua", Long.class);

    private static final LuaScript FIND = LuaScript.load("find.lua", byte[].class);
    private static final LuaScript RESOLVE = LuaScript.loadUnrepeatable("resolve.lua", Long.class);
    private static final LuaScript DELETE = LuaScript.loadUnrepeatable("delete.lua", Long.class);
    private static final LuaScript DELETE_UNCHANGED = LuaScript.loadUnrepeatable("delete-unchanged.lua", Long.class);

    private static final int PAGE = 500;
    private static final Duration SLOW_CALL = Duration.ofSeconds(1);

    private static final byte[] REFUSE = {'0'};
    private static final byte[] TAKE_OVER = {'1'};
    private static final byte[] APPLIED = {'C'};
    private static final byte[] NOT_APPLIED = {'R'};

    private final Redis redis;
    private final AtomicBoolean closed = new AtomicBoolean();

    private final Duration slowCall;

    /** The last time that was sent, because most calls send the same retention. */
    private volatile Digits lastMillis = new Digits(0);

    private static final class Digits {
        private final long value;
        private final byte[] bytes;

        Digits(long value) {
            this.value = value;
            this.bytes = number(value);
        }
    }

    RedisRecords(Redis redis, Duration replicasMayTake) {
        this.redis = redis;
        this.slowCall = SLOW_CALL.plus(replicasMayTake);
    }

    @Override
    public ClaimResult claim(ClaimRequest request) {
        long lease = Millis.capped(request.lease());
        long retention = Millis.capped(request.retention());
        try {
            return claimResult(
                    request,
                    runReplicated(
                            "claim",
                            CLAIM,
                            request.key(),
                            RecordHeader.claimed(request, lease, retention),
                            millis(retention),
                            request.takeOver() ? TAKE_OVER : REFUSE));
        } catch (StorageUnavailableException e) {
            if (e.getCause() instanceof TooFewReplicasException tooFew
                    && claimResult(request, tooFew.reply()) instanceof ClaimResult.Claimed stored) {
                throw givingBack(stored, retention, String.valueOf(e.getMessage()), tooFew);
            }
            throw e;
        }
    }

    /**
     * Releases a claim that too few replicas have, because nothing runs under it. Left on the primary it would show as abandoned, a false
     * "outcome unknown". A claim that was abandoned before is made abandoned again at once, so that the next attempt still reports a
     * take-over. This write waits for no replica, because the replicas do not respond.
     */
    private StorageUnavailableException givingBack(
            ClaimResult.Claimed stored, long retention, String message, Throwable cause) {
        Claim claim = stored.claim();
        try {
            if (stored.takenOver()) {
                run(
                        "renew",
                        WRITE,
                        claim.key(),
                        RecordHeader.head('L', claim, 0).array(),
                        number(1));
            } else {
                run(
                        "release",
                        WRITE,
                        claim.key(),
                        RecordHeader.head('R', claim, 0).array(),
                        millis(retention));
            }
            return StorageUnavailableException.givingBack(message, cause, true);
        } catch (RuntimeException e) {
            StorageUnavailableException refused = StorageUnavailableException.givingBack(message, cause, false);
            refused.addSuppressed(e);
            return refused;
        }
    }

    private ClaimResult claimResult(ClaimRequest request, Object scriptReply) {
        List<?> reply = list(scriptReply);
        if (reply.get(0) instanceof Long) {
            return claimed(request, 1, false);
        }
        byte[] found = (byte[]) reply.get(0);
        if (RecordHeader.begins(found)) {
            return new ClaimResult.Completed(RecordHeader.resultOf(found));
        }
        return switch (text(found)) {
            case "claimed" -> claimed(request, (Long) reply.get(1), (Long) reply.get(2) == 1);
            case "in-progress" -> new ClaimResult.InProgress(Duration.ofMillis((Long) reply.get(1)));
            case "key-reused" -> new ClaimResult.KeyReused();
            case "abandoned" -> new ClaimResult.Abandoned((Long) reply.get(1));
            case "unknown" -> new ClaimResult.Unknown();
            default -> throw unreadable(reply);
        };
    }

    private static ClaimResult claimed(ClaimRequest request, long fence, boolean takenOver) {
        return new ClaimResult.Claimed(
                new Claim(request.key(), request.fingerprint(), request.owner(), fence), takenOver);
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        return write("complete", claim, completed(claim, result), Millis.checked("retention", retention));
    }

    private static byte[] completed(Claim claim, byte[] result) {
        return RecordHeader.head('C', claim, result.length).put(result).array();
    }

    @Override
    public List<Supplier<WriteResult>> completeAll(List<CompletionRequest> completions) {
        if (redis.runsPerRoundTrip() == 1) {
            return IdempotenceStorage.super.completeAll(completions);
        }
        List<Redis.ScriptRun> runs = new ArrayList<>(completions.size());
        completions.forEach(each -> runs.add(new Redis.ScriptRun(
                bytes(each.claim().key()),
                completed(each.claim(), each.result()),
                millis(Millis.capped(each.retention())))));
        List<Supplier<WriteResult>> outcomes = new ArrayList<>(runs.size());
        for (Object reply : calling("complete", () -> redis.runAllReplicated(WRITE, runs))) {
            outcomes.add(() -> calling("complete", () -> written(reply)));
        }
        return outcomes;
    }

    /** 16 on connections opened here, to a single server or to a primary behind Sentinels. In a Cluster each is sent to its own node. */
    @Override
    public int completionsPerRoundTrip() {
        return redis.runsPerRoundTrip();
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        byte[] record = RecordHeader.head('D', claim, result.length).put(result).array();
        return write("complete provisionally", claim, record, Millis.checked("retention", retention));
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        byte[] record = RecordHeader.head('R', claim, 0).array();
        byte[] millis = millis(Millis.checked("retention", retention));
        return written(runReplicated("release", RELEASE, claim.key(), record, millis));
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        long millis = Millis.checked("retention", retention);
        byte[] record =
                RecordHeader.head('U', claim, Long.BYTES).putLong(millis).array();
        return write("mark unknown", claim, record, millis);
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        byte[] record = RecordHeader.head('L', claim, 0).array();
        return write("renew", claim, record, Millis.checked("lease", lease));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        return header(key, (List<?>) run("find", FIND, key));
    }

    private static Optional<IdempotenceRecord> header(StorageKey key, List<?> reply) {
        return RecordHeader.read(key, (byte[]) reply.get(0), (Long) reply.get(1));
    }

    /**
     * {@inheritDoc} Walks with {@code SCAN} over every primary, 500 keys a step, and reads the records of each step in one more round trip.
     */
    @Override
    public Stream<IdempotenceRecord> list(String namespace) {
        String pattern = StorageKey.prefix(namespace) + "*";
        Iterator<List<ScannedKey>> scan = listing(() -> redis.scan(pattern, PAGE, FIND));
        return Stream.iterate(0, page -> listing(scan::hasNext), page -> page + 1)
                .flatMap(page -> listing(() -> records(scan.next())).stream());
    }

    private static List<IdempotenceRecord> records(List<ScannedKey> page) {
        List<IdempotenceRecord> records = new ArrayList<>(page.size());
        page.forEach(read -> record(read).ifPresent(records::add));
        return records;
    }

    private static Optional<IdempotenceRecord> record(ScannedKey read) {
        if (read.reply() instanceof RuntimeException error) {
            if (RedisErrors.corruption(error) == null) {
                throw error;
            }
            return Optional.empty();
        }
        try {
            return header(new StorageKey(new String(read.key(), StandardCharsets.UTF_8)), (List<?>) read.reply());
        } catch (CorruptRecordException e) {
            return Optional.empty();
        }
    }

    private <T> T listing(Supplier<T> step) {
        return calling("list", step);
    }

    @Override
    public boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention) {
        byte[] millis = millis(Millis.checked("retention", retention));
        Object done = resolution == Resolution.APPLIED
                ? run("resolve", RESOLVE, key, APPLIED, number(fence), millis, ClaimResult.noResult())
                : run("resolve", RESOLVE, key, NOT_APPLIED, number(fence), millis);
        return isDone(done);
    }

    @Override
    public boolean delete(StorageKey key) {
        return isDone(runReplicated("delete", DELETE, key));
    }

    @Override
    public boolean deleteUnchanged(StorageKey key, @Nullable IdempotenceRecord seen) {
        if (seen != null && !seen.key().equals(key)) {
            return false;
        }
        byte[][] identity = seen == null ? new byte[0][] : new byte[][] {RecordHeader.identity(seen)};
        return isDone(runReplicated("delete", DELETE_UNCHANGED, key, identity));
    }

    /** One second, plus the time that replicas may take. */
    @Override
    public Duration slowCall() {
        return slowCall;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            redis.close();
        }
    }

    /** The servers' names, without credentials. */
    @Override
    public String toString() {
        return "RedisIdempotenceStorage[" + redis.name() + "]";
    }

    private WriteResult write(String action, Claim claim, byte[] record, long millis) {
        return written(runReplicated(action, WRITE, claim.key(), record, millis(millis)));
    }

    private WriteResult written(Object scriptReply) {
        if (scriptReply instanceof RuntimeException e) {
            throw e;
        }
        List<?> reply = list(scriptReply);
        return switch (((Long) reply.get(0)).intValue()) {
            case 1 -> new WriteResult.Done();
            case 2 -> new WriteResult.StoredAfterLoss();
            case 3 -> new WriteResult.Lost();
            case 4 -> new WriteResult.Fenced((Long) reply.get(1), reply.size() == 2 ? null : (byte[]) reply.get(2));
            default -> throw unreadable(reply);
        };
    }

    private Object run(String action, LuaScript script, StorageKey key, byte[]... args) {
        return calling(action, () -> redis.run(script, bytes(key), args));
    }

    /**
     * Runs a script that writes a claim or its end, or deletes a record. It counts only if enough replicas have it, because a claim that no
     * replica has could be lost with its primary, and because a probe must fail as claims do.
     */
    private Object runReplicated(String action, LuaScript script, StorageKey key, byte[]... args) {
        return calling(action, () -> redis.runReplicated(script, bytes(key), args));
    }

    private <T> T calling(String action, Supplier<T> call) {
        try {
            return call.get();
        } catch (NothingWrittenException e) {
            throw translated(action, e.reason(), true);
        } catch (RuntimeException e) {
            throw translated(action, e, false);
        }
    }

    /** Translates a failure. Whatever the driver throws, the record's state is unknown: fail closed (P6). */
    private RuntimeException translated(String action, RuntimeException e, boolean nothingWritten) {
        String corruption = RedisErrors.corruption(e);
        if (corruption != null) {
            return new CorruptRecordException("a record in " + redis.name() + " cannot be read: " + corruption);
        }
        if (RedisErrors.isInterrupted(e)) {
            Thread.currentThread().interrupt();
        }
        String message = redis.name() + " could not " + action + ": " + redis.reason(e);
        if (!nothingWritten) {
            return new StorageUnavailableException(message, e);
        }
        return RedisErrors.isFull(e)
                ? StorageUnavailableException.refused(message, e)
                : StorageUnavailableException.notSent(message, e);
    }

    /** Some drivers return a single value as a list of one. */
    private static List<?> list(Object reply) {
        return reply instanceof List<?> list ? list : List.of(reply);
    }

    private static boolean isDone(Object reply) {
        return (Long) list(reply).get(0) == 1;
    }

    private static byte[] bytes(StorageKey key) {
        return key.value().getBytes(StandardCharsets.UTF_8);
    }

    private byte[] millis(long value) {
        Digits digits = lastMillis;
        if (digits.value != value) {
            digits = new Digits(value);
            lastMillis = digits;
        }
        return digits.bytes;
    }

    private static byte[] number(long value) {
        return Long.toString(value).getBytes(StandardCharsets.US_ASCII);
    }

    private static String text(Object bytes) {
        return new String((byte[]) bytes, StandardCharsets.US_ASCII);
    }

    private IllegalStateException unreadable(List<?> reply) {
        return new IllegalStateException(redis.name() + " replied to a script with " + reply.size()
                + " elements that this version does not define");
    }
}
