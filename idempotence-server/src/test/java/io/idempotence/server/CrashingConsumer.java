package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.redis.EmbeddedRedis;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

/** A process that begins all messages it was given and finishes none of them, until it is killed. */
final class CrashingConsumer {
    static final String MIDDLE = "in the middle";
    static final Duration LEASE = Duration.ofSeconds(2);

    private CrashingConsumer() {}

    public static void main(String[] args) throws Exception {
        String[] messages = Arrays.copyOfRange(args, 1, args.length);
        CountDownLatch working = new CountDownLatch(messages.length);
        Idempotence idempotence = Idempotence.builder(EmbeddedRedis.connect(args[0]))
                .policy(IdempotencePolicy.builder().lease(LEASE).build())
                .build();
        // The first execution of a JVM may take longer than the lease.
        Idempotence.over(EmbeddedRedis.connect(args[0])).execute(IdempotenceId.of("first"), () -> "done");
        for (String message : messages) {
            Thread thread = new Thread(() -> {
                try {
                    idempotence.execute(IdempotenceId.of(message), () -> {
                        working.countDown();
                        new CountDownLatch(1).await();
                        return "never";
                    });
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        working.await();
        KilledProcess.here(MIDDLE);
    }
}
