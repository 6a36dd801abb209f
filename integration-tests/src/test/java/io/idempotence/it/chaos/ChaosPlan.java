package io.idempotence.it.chaos;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.random.RandomGenerator;

/** The events of a run, determined by its seed. */
final class ChaosPlan {
    /** A step of what is done to the processes. */
    enum Step {
        KILL_PROVIDER,
        /** SIGSTOP for longer than the lease, then SIGCONT. */
        PAUSE_PROVIDER,
        KILL_STORAGE,
        PAUSE_STORAGE,
        /** One provider cannot reach the storage. */
        CUT_STORAGE,
        /** The storage does what one provider asks, and its replies are lost. */
        SILENCE_STORAGE,
        /** A provider dies while it cannot record what it did. */
        KILL_PROVIDER_DURING_AN_OUTAGE;

        /** Whether what a provider did in that time, or would have done next, may be lost. */
        boolean stopsProvider() {
            return this == KILL_PROVIDER || this == PAUSE_PROVIDER || this == KILL_PROVIDER_DURING_AN_OUTAGE;
        }

        /** Whether a provider could not record what it did. */
        boolean stopsStorage() {
            return this != KILL_PROVIDER && this != PAUSE_PROVIDER;
        }
    }

    /** What a run is exposed to. */
    enum Scene {
        EVERYTHING(Duration.ofSeconds(2), Duration.ofSeconds(8), 3_000),
        /** Nothing takes so long that a call could end without its result. */
        NETWORK_FAULTS_ONLY(Duration.ofSeconds(20), Duration.ofSeconds(20), 800),
        NETWORK_FAULTS_WITHOUT_PROTECTION(Duration.ofSeconds(2), Duration.ofSeconds(8), 3_000);

        private final Duration lease;
        private final Duration deadline;
        private final int longestPause;

        Scene(Duration lease, Duration deadline, int longestPause) {
            this.lease = lease;
            this.deadline = deadline;
            this.longestPause = longestPause;
        }

        Duration lease() {
            return lease;
        }

        Duration deadline() {
            return deadline;
        }

        boolean isProtected() {
            return this != NETWORK_FAULTS_WITHOUT_PROTECTION;
        }

        boolean hasIncidents() {
            return this == EVERYTHING;
        }
    }

    private static final int LONGEST_OUTAGE = 5_000;

    private final long seed;
    private final Scene scene;
    private final RandomGenerator random;
    private final Deque<Step> next = new ArrayDeque<>();

    ChaosPlan(long seed, Scene scene) {
        this.seed = seed;
        this.scene = scene;
        this.random = random(seed, "steps");
    }

    /** Each comes once before any comes again. */
    Step step() {
        if (next.isEmpty()) {
            List<Step> steps = new ArrayList<>(List.of(Step.values()));
            while (!steps.isEmpty()) {
                next.add(steps.remove(random.nextInt(steps.size())));
            }
        }
        return next.remove();
    }

    int provider() {
        return random.nextInt(2);
    }

    /** How long a provider is paused: past its lease. */
    Duration pastTheLease() {
        return scene.lease().plusMillis(random.nextInt(500, 2_000));
    }

    /** How long the storage is away. */
    Duration outage() {
        return Duration.ofMillis(random.nextInt(300, LONGEST_OUTAGE));
    }

    /** How long replies of the storage are lost: longer than both attempts of a claim, which then has to be given back. */
    Duration pastAClaim() {
        return Duration.ofMillis(random.nextInt(2_500, LONGEST_OUTAGE));
    }

    Duration quiet() {
        return Duration.ofMillis(random.nextInt(500, 2_500));
    }

    /** The work of a call. Some take long enough to be met by what is done to the processes, a few may outlive their lease. */
    Work work(String call) {
        RandomGenerator random = random(seed, call);
        int length = random.nextInt(100);
        int longest = length < 2 ? scene.longestPause : length < 15 ? 800 : 10;
        int kind = random.nextInt(100);
        return new Work(
                call,
                kind < 8 ? Work.Kind.REJECTED : kind < 16 ? Work.Kind.FAILS_FIRST : Work.Kind.DONE,
                random.nextInt(longest),
                random.nextInt(longest));
    }

    static RandomGenerator random(long seed, String what) {
        return new SplittableRandom(seed * 31 + what.hashCode());
    }

    static void pause(long millis) {
        pause(Duration.ofMillis(millis));
    }

    /** The passing of time is what a plan is about. */
    static void pause(Duration duration) {
        long end = System.nanoTime() + duration.toNanos();
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
            if (Thread.currentThread().isInterrupted()) {
                return;
            }
        }
    }
}
