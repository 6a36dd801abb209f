package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The recorder of how one execution ended, now or in the background. The lease is renewed until that succeeds: a pending completion must
 * not look abandoned. Thread-safe.
 */
final class EndRecorder {
    private final EngineParts parts;
    private final IdempotenceId id;
    private final Claim claim;
    private final boolean takenOver;
    private final IdempotencePolicy policy;
    private final Lease lease;
    private final HandlerDecision handler;
    private volatile boolean endIsPending;

    EndRecorder(
            EngineParts parts,
            IdempotenceId id,
            ClaimResult.Claimed claimed,
            IdempotencePolicy policy,
            Lease lease,
            HandlerDecision handler) {
        this.parts = parts;
        this.id = id;
        this.claim = claimed.claim();
        this.takenOver = claimed.takenOver();
        this.policy = policy;
        this.lease = lease;
        this.handler = handler;
    }

    /**
     * The end of an execution.
     *
     * @param abandons whether the record is left abandoned, as it was before the take-over, instead of released
     */
    private record End(Verdict verdict, byte[] result, boolean provisional, boolean abandons) {
        /** How many bytes of its result are recorded. */
        int size() {
            return verdict == Verdict.KEEP ? result.length : 0;
        }

        End withoutResult() {
            return new End(verdict, ClaimResult.noResult(), provisional, abandons);
        }
    }

    /**
     * Records an end. Does not throw if the storage fails.
     *
     * @return the decision that the caller gets instead of the handler's result, if there is one
     */
    Optional<Decision.Substitute> recordEnd(Verdict verdict, byte[] result, boolean provisional) {
        // A release by the handler itself is different: it declares that nothing took effect.
        boolean abandons = verdict == Verdict.RELEASE
                && takenOver
                && policy.onAbandoned() == OnAbandoned.RE_EXECUTE
                && (handler.isOvertaken() || !handler.decidedToRelease());
        End end = new End(verdict, result, provisional, abandons);
        return mayFollowTheResponse(end) && parts.completions().offer(new FollowingEnd(end))
                ? Optional.empty()
                : writeNow(end);
    }

    /** An end that is recorded after its response. */
    private final class FollowingEnd implements CompletionQueue.Entry {
        private final End end;
        private final CompletionRequest request;

        FollowingEnd(End end) {
            this.end = end;
            this.request = new CompletionRequest(claim, end.result, policy.retention());
        }

        @Override
        public IdempotenceId id() {
            return id;
        }

        @Override
        public CompletionRequest request() {
            return request;
        }

        @Override
        public void written(WriteResult result) {
            EndRecorder.this.written(end, result);
        }

        @Override
        public void writeAlone() {
            writeNow(end);
        }

        @Override
        public void failed(Throwable cause) {
            writeLater(end, cause);
        }
    }

    /** Records the result of an error page, before it leaves: until then duplicates would get the provisional result. */
    Optional<Decision.Substitute> replace(byte[] result) {
        return writeNow(new End(Verdict.KEEP, result, false, false));
    }

    /** An owner whose lease may be over does not qualify: it may have to give its caller another result (T14). */
    private boolean mayFollowTheResponse(End end) {
        return policy.completion() == IdempotencePolicy.Completion.AFTER_RESPONSE
                && end.verdict == Verdict.KEEP
                && !end.provisional
                && !lease.mayBeOver();
    }

    /** Writes an end. If the storage is down, it is written later. */
    private Optional<Decision.Substitute> writeNow(End end) {
        if (endIsPending) {
            // The storage is down. The order of the two writes does not matter: a provisional one replaces nothing.
            retry(end);
            return Optional.empty();
        }
        WriteResult result;
        try {
            result = markingFailedRelease(end, () -> parts.guard().callUnlimited(() -> store(end)));
        } catch (CorruptRecordException e) {
            parts.leases().ended(lease);
            lease.damaged(e);
            return insteadOfOwn(end, Optional.empty());
        } catch (Throwable e) {
            writeLater(end, e);
            return insteadOfOwn(end, Optional.empty());
        }
        // Outside the guard, so that a slow listener or log does not count as a slow storage.
        return insteadOfOwn(end, written(end, result));
    }

    private void writeLater(End end, Throwable cause) {
        try {
            parts.events().storageFailed(id, "a completion is not recorded yet", cause);
        } finally {
            // The retry must not depend on the log.
            retry(end);
        }
    }

    private void retry(End end) {
        endIsPending = true;
        Runnable afterwards = () -> parts.leases().ended(lease);
        if (!parts.writes().offer(id, end.size(), policy.retention(), () -> sendAgain(end), afterwards)) {
            // If this end were given up, the record would look abandoned, and the operation might run again.
            End small = end.withoutResult();
            parts.writes().retry(id, small.size(), policy.retention(), () -> sendAgain(small), afterwards);
            parts.events()
                    .log(
                            IdempotenceEvent.STORAGE_ERROR,
                            id,
                            "too many results wait for the storage; this one is dropped",
                            null);
        }
    }

    private void sendAgain(End end) {
        WriteResult result = markingFailedRelease(end, () -> store(end));
        // A failure of a listener or the log is not a failure of the write.
        Scheduler.runLogged(() -> written(end, result));
    }

    /**
     * Sends a write. Marks a release that fails: the storage may have executed it, and the retry then finds its effect. A repeated
     * completion needs no mark, because it finds its own result.
     */
    private WriteResult markingFailedRelease(End end, Supplier<WriteResult> sending) {
        boolean inTime = !lease.mayBeOver();
        try {
            return sending.get();
        } catch (Throwable e) {
            if (end.verdict == Verdict.RELEASE) {
                boolean nothingWritten = e instanceof StorageUnavailableException failure && failure.nothingWritten();
                lease.releaseFailed(inTime, !nothingWritten);
            }
            throw e;
        }
    }

    /**
     * The decision that replaces the handler's own result. A success is replaced only by the result of another owner; a failure of an
     * overtaken owner always is (T14).
     */
    private Optional<Decision.Substitute> insteadOfOwn(End end, Optional<Decision.Substitute> canonical) {
        if (canonical.isPresent() && (end.verdict == Verdict.RELEASE || canonical.get() instanceof Decision.Replay)) {
            return canonical;
        }
        return end.verdict == Verdict.RELEASE && handler.isOvertaken()
                ? Optional.of(FixedDecisions.askAgain())
                : Optional.empty();
    }

    private WriteResult store(End end) {
        IdempotenceStorage storage = parts.storage();
        return switch (end.verdict) {
            case KEEP ->
                end.provisional
                        ? storage.completeProvisionally(claim, end.result, policy.retention())
                        : storage.complete(claim, end.result, policy.retention());
            case RELEASE -> end.abandons ? lease.abandon() : storage.release(claim, policy.retention());
            case UNKNOWN -> storage.markUnknown(claim, policy.retention());
        };
    }

    /**
     * Ends the lease and notifies the duplicates that wait in this process, so that they need not ask the storage. They are not notified of
     * a provisional result, which may still be replaced: if it is not, their poll finds it.
     */
    private Optional<Decision.Substitute> written(End end, WriteResult result) {
        parts.leases().ended(lease);
        boolean isDone = result instanceof WriteResult.Done || lease.wasReleasedBefore(result);
        if (end.verdict == Verdict.RELEASE && !end.abandons && isDone) {
            parts.events().released(id, handler.releaseReason());
        }
        Optional<Decision.Substitute> canonical = lease.judge(result).map(FixedDecisions::ended);
        if (canonical.isPresent()) {
            completeWaits(canonical.get());
        } else if (!end.provisional && !(result instanceof WriteResult.Fenced)) {
            completeWaits(
                    switch (end.verdict) {
                        case KEEP -> FixedDecisions.ended(end.result);
                        case RELEASE -> FixedDecisions.askAgain();
                        case UNKNOWN -> FixedDecisions.outcomeUnknown();
                    });
        }
        return canonical;
    }

    private void completeWaits(Decision.Substitute decision) {
        parts.waiters().complete(claim.key(), claim.fingerprint(), decision);
    }
}
