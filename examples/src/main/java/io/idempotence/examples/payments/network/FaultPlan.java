package io.idempotence.examples.payments.network;

import java.util.SplittableRandom;

/**
 * A choice of the fault that hits each request.
 *
 * <p>A plan depends on nothing but seed, order number and attempt: the same seed spoils the same attempts at the same orders, whoever
 * makes them and in whatever sequence. Immutable.
 */
public final class FaultPlan {
    private static final FaultPlan NO_FAULTS = new FaultPlan(0, false);

    private final long seed;
    private final boolean lossy;

    private FaultPlan(long seed, boolean lossy) {
        this.seed = seed;
        this.lossy = lossy;
    }

    /**
     * The plan of a lossy network, with the shares of {@link Fault#percent()}.
     *
     * @param seed any number
     * @return the plan
     */
    public static FaultPlan ofSeed(long seed) {
        return new FaultPlan(seed, true);
    }

    /**
     * The plan of a network that loses nothing.
     *
     * @return the plan
     */
    public static FaultPlan noFaults() {
        return NO_FAULTS;
    }

    /**
     * The fault that hits one request. If the first attempt at an order meets a slow handler, so does the second.
     *
     * @param order the order's number
     * @param attempt counts the requests about this order, from 1
     * @return the fault, {@link Fault#NONE} for no fault
     */
    public Fault fault(int order, int attempt) {
        if (!lossy) {
            return Fault.NONE;
        }
        if (attempt == 2 && draw(order, 1) == Fault.SLOW_HANDLER) {
            return Fault.SLOW_HANDLER;
        }
        return draw(order, attempt);
    }

    private Fault draw(int order, int attempt) {
        // Two draws, so that neighbouring orders and attempts have nothing in common.
        long orderSeed = new SplittableRandom(seed).nextLong() + order;
        long attemptSeed = new SplittableRandom(orderSeed).nextLong() + attempt;
        int percent = new SplittableRandom(attemptSeed).nextInt(100);
        for (Fault fault : Fault.values()) {
            percent -= fault.percent();
            if (percent < 0) {
                return fault;
            }
        }
        throw new AssertionError("the shares of all faults make less than 100");
    }
}
