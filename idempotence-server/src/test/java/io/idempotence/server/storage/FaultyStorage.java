package io.idempotence.server.storage;

import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A wrapper around a working storage that can lose calls before they arrive, and replies on their way back. */
public final class FaultyStorage implements IdempotenceStorage {
    /** A call of the storage. */
    public enum Call {
        CLAIM,
        COMPLETE,
        COMPLETE_PROVISIONALLY,
        RELEASE,
        MARK_UNKNOWN,
        RENEW,
        FIND,
        RESOLVE,
        DELETE,
        DELETE_UNCHANGED
    }

    /** A fault. It throws to lose the call or its reply, and may do anything else at that point. */
    @FunctionalInterface
    public interface Fault {
        void on(Call call, StorageKey key);
    }

    private final IdempotenceStorage delegate;
    private final ConcurrentLinkedQueue<Call> calls = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<Integer> batches = new ConcurrentLinkedQueue<>();
    private volatile Fault before = (call, key) -> {};
    private volatile Fault after = (call, key) -> {};
    private volatile int completionsPerRoundTrip;
    private volatile int lostOutcomes;
    private volatile Duration slowCall = IdempotenceStorage.super.slowCall();
    private final AtomicInteger brokenOutcomes = new AtomicInteger();

    public FaultyStorage(IdempotenceStorage delegate) {
        this.delegate = delegate;
    }

    /** Sets the fault before each call arrives. */
    public FaultyStorage before(Fault fault) {
        before = fault;
        return this;
    }

    /** Loses every renewal, so that an execution that runs for longer than a lease is overtaken. */
    public FaultyStorage withoutRenewals() {
        return before((call, key) -> {
            if (call == Call.RENEW) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        });
    }

    /** From when a call is so slow that it counts as a failure. Default: that of every storage. */
    public FaultyStorage slowCall(Duration slow) {
        slowCall = slow;
        return this;
    }

    @Override
    public Duration slowCall() {
        return slowCall;
    }

    /** How many completions are on the wire together. */
    public FaultyStorage completionsPerRoundTrip(int number) {
        completionsPerRoundTrip = number;
        return this;
    }

    /** Sets the fault before each reply returns. */
    public FaultyStorage after(Fault fault) {
        after = fault;
        return this;
    }

    /** Hangs until the latch is down, like a storage that does not respond. */
    public static void hang(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StorageUnavailableException("interrupted", e);
        }
    }

    /** How many calls of a kind there were. */
    public long count(Call call) {
        return calls.stream().filter(call::equals).count();
    }

    /** Returns one outcome too few of each list of completions. */
    public FaultyStorage losingOutcomes() {
        lostOutcomes = 1;
        return this;
    }

    /** Throws an error of the JVM instead of the first outcome of the next list of completions. */
    public FaultyStorage breakingAnOutcome() {
        brokenOutcomes.set(1);
        return this;
    }

    /** How many completions there were in each list of them that has arrived. */
    public List<Integer> batches() {
        return List.copyOf(batches);
    }

    private void out(Call call, StorageKey key) {
        calls.add(call);
        before.on(call, key);
    }

    private <T> T back(Call call, StorageKey key, T reply) {
        after.on(call, key);
        return reply;
    }

    @Override
    public ClaimResult claim(ClaimRequest request) {
        out(Call.CLAIM, request.key());
        return back(Call.CLAIM, request.key(), delegate.claim(request));
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        out(Call.COMPLETE, claim.key());
        return back(Call.COMPLETE, claim.key(), delegate.complete(claim, result, retention));
    }

    /** On the wire these are as many calls, of which each may lose all. */
    @Override
    public List<Supplier<WriteResult>> completeAll(List<CompletionRequest> completions) {
        completions.forEach(each -> out(Call.COMPLETE, each.claim().key()));
        batches.add(completions.size());
        List<Supplier<WriteResult>> outcomes = new ArrayList<>(delegate.completeAll(completions));
        if (brokenOutcomes.getAndSet(0) > 0) {
            outcomes.set(0, () -> {
                throw new StackOverflowError("in the storage");
            });
        }
        completions.forEach(each -> after.on(Call.COMPLETE, each.claim().key()));
        return outcomes.subList(0, outcomes.size() - lostOutcomes);
    }

    @Override
    public int completionsPerRoundTrip() {
        return completionsPerRoundTrip == 0 ? delegate.completionsPerRoundTrip() : completionsPerRoundTrip;
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        out(Call.COMPLETE_PROVISIONALLY, claim.key());
        return back(Call.COMPLETE_PROVISIONALLY, claim.key(), delegate.completeProvisionally(claim, result, retention));
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        out(Call.RELEASE, claim.key());
        return back(Call.RELEASE, claim.key(), delegate.release(claim, retention));
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        out(Call.MARK_UNKNOWN, claim.key());
        return back(Call.MARK_UNKNOWN, claim.key(), delegate.markUnknown(claim, retention));
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        out(Call.RENEW, claim.key());
        return back(Call.RENEW, claim.key(), delegate.renew(claim, lease));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        out(Call.FIND, key);
        return back(Call.FIND, key, delegate.find(key));
    }

    @Override
    public Stream<IdempotenceRecord> list(String namespace) {
        return delegate.list(namespace);
    }

    @Override
    public boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention) {
        out(Call.RESOLVE, key);
        return back(Call.RESOLVE, key, delegate.resolve(key, fence, resolution, retention));
    }

    @Override
    public boolean delete(StorageKey key) {
        out(Call.DELETE, key);
        return back(Call.DELETE, key, delegate.delete(key));
    }

    @Override
    public boolean deleteUnchanged(StorageKey key, @Nullable IdempotenceRecord seen) {
        out(Call.DELETE_UNCHANGED, key);
        return back(Call.DELETE_UNCHANGED, key, delegate.deleteUnchanged(key, seen));
    }

    @Override
    public void close() {
        delegate.close();
    }
}
