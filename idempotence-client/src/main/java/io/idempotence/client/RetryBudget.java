package io.idempotence.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * A budget of tokens that limits the retries of one client. A retry costs tokens and a success refunds some, so that a service in trouble
 * is not flooded with retries.
 *
 * <p>Defaults: 500 tokens, a retry costs 5, a success refunds 1. Shared by all methods of all clients with the same name under the same
 * {@link IdempotenceClientConfig}. Thread-safe and lock-free.
 */
public final class RetryBudget {
    private final int capacity;
    private final int cost;
    private final int refund;
    private final AtomicInteger tokens;

    RetryBudget(int capacity, int cost, int refund) {
        this.capacity = capacity;
        this.cost = cost;
        this.refund = refund;
        this.tokens = new AtomicInteger(capacity);
    }

    /**
     * Pays for one retry. For integrations.
     *
     * @return false if there are too few tokens; then nothing was paid
     */
    public boolean trySpend() {
        int before = tokens.get();
        while (before >= cost && capacity > 0) {
            if (tokens.compareAndSet(before, before - cost)) {
                return true;
            }
            before = tokens.get();
        }
        return false;
    }

    /** Refunds the tokens of one success, up to the capacity. For integrations. */
    public void refund() {
        int before = tokens.get();
        while (before < capacity && !tokens.compareAndSet(before, Math.min(capacity, before + refund))) {
            before = tokens.get();
        }
    }

    /** {@return the tokens left, 0 to the capacity} */
    public int available() {
        return tokens.get();
    }
}
