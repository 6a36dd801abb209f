package io.idempotence.server.redis.internal.jedis;

import io.idempotence.internal.SharedFailure;
import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A Redis server whose concurrent callers share round trips (flat combining). Thread-safe, without a thread of its own.
 *
 * <p>A caller either leads a batch or waits in the queue. A leader borrows a connection, and sends its own calls and those in the queue in
 * one round trip. Then it gives the connection back, makes the first caller that still waits the next leader, and hands out the replies. A
 * single caller leads at once.
 *
 * <p><b>When a batch begins.</b> A batch begins if none is in flight, if more callers wait than batches are in flight, or if the server is
 * so far away that waiting for another batch would take longer than it saves. So the load determines how large batches are. In any case, a
 * caller leads if during 10 ms of its wait no batch has ended and no other caller has begun to lead for this reason. The batches in flight
 * then count as hung, and nobody waits for them any more.
 *
 * <p><b>Why no caller gets another caller's reply.</b> A caller is queued first. Then, under the lock and exactly once, it becomes a
 * leader, is taken into a batch, or withdraws. None of its calls is sent before that. Only its leader gives it replies, and only if every
 * call of the batch has one. If the round trip fails, every caller in the batch fails, because each call may have been executed.
 */
final class FlatCombiner implements RedisServer {
    private static final int MAX_CALLS = 64;

    /** The longest wait for another batch that pays off: about the processor time that a batch of its own costs. */
    private static final long WORTH_WAITING_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    /** How long a caller waits without progress before it leads. With less than the usual wait under load, all would wake up for nothing. */
    private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** A thread that wakes up this late was paused together with the process. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Supplier<Connection> connections;
    private final RoundTripSender sender;
    private final int maxBatches;
    private final long maxWaitNanos;
    private final long maxRoundTripNanos;
    private final LongSupplier nanoTime;

    private final ReentrantLock lock = new ReentrantLock();
    /** The waiting callers, in the order of their arrival. Guarded by the lock. */
    private final Deque<Caller> queue = new ArrayDeque<>();
    /** How many batches are under way. Guarded by the lock. */
    private int batches;
    /** How many of them were under way when a caller last led for lack of progress. Guarded by the lock. */
    private int hung;
    /** How many callers have led for lack of progress. Guarded by the lock. */
    private int stalls;
    /** When a batch last ended, or last began for lack of progress. Guarded by the lock. */
    private long lastProgress;
    /** The shortest of the last round trips. */
    private volatile long roundTripNanos;
    /** Whether the last batch had several callers, so that the next one may have them, too. */
    private volatile boolean lastWasShared;

    /** A failure of a batch, for a caller that did not lead it. The batch's connection may be the only one that is broken. */
    static final class FollowerFailedException extends JedisConnectionException {
        private static final long serialVersionUID = 1L;

        FollowerFailedException(Throwable cause) {
            super("the connection failed on which this call was sent together with other calls", cause);
        }
    }

    /** The failure of a batch of several callers, which all of them get. */
    private static final class BatchFailedException extends JedisConnectionException implements SharedFailure {
        private static final long serialVersionUID = 1L;

        private final transient Set<Object> observers = ConcurrentHashMap.newKeySet();

        BatchFailedException(RuntimeException cause) {
            super("a round trip for several callers failed", cause);
        }

        @Override
        public boolean countsFor(Object observer) {
            return observers.add(observer);
        }
    }

    private enum CallerState {
        QUEUED,
        LEADING,
        LED,
        TAKEN
    }

    private static final class Caller {
        private final Thread thread = Thread.currentThread();
        private final long since;
        private final List<RedisCall> calls;
        /** From when on its wait counts. A pause of this process begins the wait anew, once. Only for its own thread. */
        private long waitsSince;

        private volatile CallerState state = CallerState.QUEUED;
        /** What {@link FlatCombiner#stalls} was when it began to lead. Guarded by the lock. */
        private int stalls;
        /** Whether it has waited for long without progress, or was left in the queue by a full batch. Guarded by the lock. */
        private boolean isImpatient;

        private volatile @Nullable List<Object> replies;
        private volatile @Nullable Throwable failure;

        Caller(List<RedisCall> calls, long since) {
            this.calls = calls;
            this.since = since;
            this.waitsSince = since;
        }
    }

    /**
     * @param connections lends connections, which are closed here
     * @param maxBatches how many connections may be in use at once; unlimited if negative
     * @param maxWait how long a caller may wait for its turn
     */
    FlatCombiner(Supplier<Connection> connections, RoundTripSender sender, int maxBatches, Duration maxWait) {
        this(connections, sender, maxBatches, maxWait, System::nanoTime);
    }

    /** @param nanoTime a clock like {@link System#nanoTime} */
    FlatCombiner(
            Supplier<Connection> connections,
            RoundTripSender sender,
            int maxBatches,
            Duration maxWait,
            LongSupplier nanoTime) {
        this.connections = connections;
        this.sender = sender;
        this.maxBatches = maxBatches < 0 ? Integer.MAX_VALUE : maxBatches;
        this.maxWaitNanos = maxWait.toNanos();
        this.maxRoundTripNanos = sender.longest().toNanos();
        this.nanoTime = nanoTime;
        this.lastProgress = nanoTime.getAsLong();
    }

    /**
     * {@inheritDoc} They are sent directly after each other. An interrupt ends the wait for a connection, but not the wait for replies.
     *
     * @throws NothingWrittenException if they were not sent
     * @throws RuntimeException if they may have been executed
     */
    @Override
    public List<Object> ask(List<RedisCall> calls) {
        sender.closeOverdue();
        Caller own = new Caller(calls, nanoTime.getAsLong());
        try {
            enter(own);
            if (own.state != CallerState.LEADING) {
                await(own);
            }
            if (own.state == CallerState.LEADING) {
                return lead(own);
            }
        } catch (Error e) {
            abandon(own);
            throw e;
        }
        Throwable failure = own.failure;
        if (failure != null) {
            throw new FollowerFailedException(failure);
        }
        return Objects.requireNonNull(own.replies);
    }

    /** Removes a caller that ended with an error of the JVM, whether it waited or led a batch. */
    private void abandon(Caller own) {
        lock.lock();
        try {
            queue.remove(own);
        } finally {
            lock.unlock();
        }
        leave(own, false);
    }

    private void enter(Caller own) {
        lock.lock();
        try {
            queue.addLast(own);
            if (isTimeForABatch()) {
                queue.removeLast();
                appoint(own);
            }
        } finally {
            lock.unlock();
        }
    }

    private boolean isTimeForABatch() {
        Caller first = queue.peekFirst();
        int running = batches - hung;
        return first != null
                && batches < maxBatches
                && (queue.size() > running
                        || roundTripNanos > running * WORTH_WAITING_NANOS
                        || nanoTime.getAsLong() - stalled(first) >= 0);
    }

    /** The time from which a caller has waited for long without progress. */
    private long stalled(Caller waiting) {
        boolean progressCounts = !waiting.isImpatient && lastProgress - waiting.since > 0;
        return (progressCounts ? lastProgress : waiting.since) + PATIENCE_NANOS;
    }

    private void appoint(Caller leader) {
        leader.state = CallerState.LEADING;
        leader.stalls = stalls;
        batches++;
    }

    /** Waits until the caller leads, or its batch has ended. */
    private void await(Caller own) {
        boolean interrupted = false;
        long next = own.since + Math.min(PATIENCE_NANOS, maxWaitNanos);
        try {
            while (true) {
                long now = nanoTime.getAsLong();
                if (interrupted || now - next >= 0) {
                    next = leadOrWithdraw(own, interrupted, now);
                }
                CallerState state = own.state;
                if (state == CallerState.LEADING || own.replies != null || own.failure != null) {
                    return;
                }
                if (state != CallerState.QUEUED) {
                    next = own.waitsSince + maxWaitNanos + maxRoundTripNanos;
                    if (now - next >= 0) {
                        throw new JedisConnectionException(
                                new SocketTimeoutException("the batch of this call has not ended"));
                    }
                }
                LockSupport.parkNanos(this, next - now);
                if (own.waitsSince == own.since && nanoTime.getAsLong() - next > PAUSE_NANOS) {
                    // The batches that it waits for were paused, too. Their replies may be here.
                    own.waitsSince = nanoTime.getAsLong();
                }
                interrupted |= Thread.interrupted();
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Makes a caller the leader of one more batch if there was no progress for long, and the limit permits it. The caller withdraws if it cannot
     * lead and was interrupted or has waited too long.
     *
     * @return when to do this again
     */
    private long leadOrWithdraw(Caller own, boolean interrupted, long now) {
        long latest = own.waitsSince + maxWaitNanos;
        lock.lock();
        try {
            if (own.state != CallerState.QUEUED) {
                return now;
            }
            boolean mustEnd = interrupted || now - latest >= 0;
            long stalled = stalled(own);
            own.isImpatient = now - stalled >= 0;
            if (batches < maxBatches && (mustEnd || own.isImpatient)) {
                queue.remove(own);
                if (own.isImpatient) {
                    hung = batches;
                    stalls++;
                    lastProgress = now;
                }
                appoint(own);
            } else if (mustEnd) {
                queue.remove(own);
                Throwable why = interrupted ? new InterruptedException() : new NoSuchElementException();
                throw new NothingWrittenException(new JedisException("no connection was free", why));
            }
            return own.isImpatient || latest - stalled < 0 ? latest : stalled;
        } finally {
            lock.unlock();
        }
    }

    @SuppressWarnings("ThreadPriorityCheck") // A hint. A caller that does not get to run joins a later batch.
    private List<Object> lead(Caller own) {
        List<Caller> others = List.of();
        List<List<Object>> replies = List.of();
        Throwable failure = null;
        boolean sent = false;
        try (Connection connection = borrowed()) {
            if (lastWasShared && roundTripNanos <= WORTH_WAITING_NANOS) {
                // Callers that are ready to run join this batch, and do not wait for the next one.
                Thread.yield();
            }
            others = takeOthers(own);
            lastWasShared = !others.isEmpty();
            sent = true;
            long begin = nanoTime.getAsLong();
            replies = sender.exchange(connection, callsOf(own, others));
            noteRoundTrip(nanoTime.getAsLong() - begin);
            return replies.get(0);
        } catch (RuntimeException e) {
            failure = e;
            RuntimeException ofAll = others.isEmpty() ? e : new BatchFailedException(e);
            failure = ofAll;
            throw ofAll;
        } catch (Error e) {
            failure = e;
            throw e;
        } finally {
            try {
                // Before the others wake up, so that the next batch does not wait for them.
                leave(own, sent);
            } finally {
                handOut(others, replies, failure);
            }
        }
    }

    private Connection borrowed() {
        try {
            return connections.get();
        } catch (RuntimeException e) {
            throw new NothingWrittenException(e);
        }
    }

    /**
     * Takes from the queue, in its order, what fits into the leader's batch. Takes nothing if this thread is interrupted, because an
     * interrupt may close its connection.
     */
    private List<Caller> takeOthers(Caller leader) {
        if (Thread.currentThread().isInterrupted()) {
            return List.of();
        }
        lock.lock();
        try {
            if (queue.isEmpty()) {
                return List.of();
            }
            List<Caller> others = new ArrayList<>(queue.size());
            int calls = leader.calls.size();
            int bytes = RedisCall.bytes(leader.calls);
            for (Caller next = queue.peekFirst(); next != null; next = queue.peekFirst()) {
                calls += next.calls.size();
                bytes += RedisCall.bytes(next.calls);
                if (calls > MAX_CALLS || bytes > RoundTripSender.SOCKET_BYTES) {
                    next.isImpatient = true;
                    break;
                }
                others.add(next);
                queue.removeFirst();
                next.state = CallerState.TAKEN;
            }
            return others;
        } finally {
            lock.unlock();
        }
    }

    private static List<List<RedisCall>> callsOf(Caller leader, List<Caller> others) {
        if (others.isEmpty()) {
            return List.of(leader.calls);
        }
        List<List<RedisCall>> calls = new ArrayList<>(others.size() + 1);
        calls.add(leader.calls);
        others.forEach(caller -> calls.add(caller.calls));
        return calls;
    }

    /** Takes a shorter time at once, but approaches a longer one slowly, because load delays most round trips. */
    private void noteRoundTrip(long nanos) {
        long before = roundTripNanos;
        roundTripNanos = before == 0 ? nanos : Math.min(nanos, before + before / MAX_CALLS);
    }

    /** @param sent whether the leader's batch was sent, so that its end is progress */
    private void leave(Caller leader, boolean sent) {
        Caller next = null;
        lock.lock();
        try {
            if (leader.state != CallerState.LEADING) {
                return;
            }
            leader.state = CallerState.LED;
            batches--;
            if (leader.stalls != stalls) {
                hung--;
            }
            if (isTimeForABatch()) {
                next = queue.removeFirst();
                appoint(next);
            }
            if (sent) {
                lastProgress = nanoTime.getAsLong();
            }
        } finally {
            lock.unlock();
        }
        if (next != null) {
            LockSupport.unpark(next.thread);
        }
    }

    /** Ends the wait of all callers in a batch except its leader, who has the first replies. */
    private static void handOut(List<Caller> others, List<List<Object>> replies, @Nullable Throwable failure) {
        for (int i = 0; i < others.size(); i++) {
            Caller caller = others.get(i);
            if (failure == null) {
                caller.replies = replies.get(i + 1);
            } else {
                caller.failure = failure;
            }
            LockSupport.unpark(caller.thread);
        }
    }
}
