package io.idempotence.server.redis;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** A counter of round trips to Redis, over all connections: a command that leaves while no reply is outstanding begins one. */
final class RoundTrips implements Supplier<DelayProxy.Tap> {
    private final AtomicInteger count = new AtomicInteger();

    /** How many there were since the last time this was asked. */
    int since() {
        return count.getAndSet(0);
    }

    /** The same, which is not forgotten. */
    int soFar() {
        return count.get();
    }

    @Override
    public DelayProxy.Tap get() {
        return new OnOneConnection();
    }

    private final class OnOneConnection implements DelayProxy.Tap {
        private final RespValues commands = new RespValues();
        private final RespValues replies = new RespValues();
        private int outstanding;

        @Override
        public synchronized void passes(boolean requests, byte[] bytes, int length) {
            if (!requests) {
                outstanding -= replies.add(bytes, length);
                return;
            }
            int more = commands.add(bytes, length);
            if (outstanding == 0 && more > 0) {
                count.incrementAndGet();
            }
            outstanding += more;
        }
    }
}
