package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Work that ends with a future, and callers that wait for another attempt. */
class IdempotenceFutureTest {
    private static final Duration LONG = Duration.ofMinutes(1);

    private final Idempotence idempotence = Idempotence.over(IdempotenceStorage.inMemory());
    private final IdempotentCall call = IdempotentCall.of("charge", IdempotenceId.of("order-4711"));
    private final AtomicInteger runs = new AtomicInteger();
    private final CompletableFuture<String> charging = new CompletableFuture<>();
    private final ExecutorService executor = Executors.newCachedThreadPool();

    @AfterEach
    void stop() throws InterruptedException {
        executor.shutdownNow();
        assertThat(executor.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
        idempotence.close();
    }

    private CompletableFuture<String> charge(Duration maxWait) {
        return idempotence.executeAsync(call, IdempotencePolicy.defaults(), maxWait, ResultCodec.text(), execution -> {
            runs.incrementAndGet();
            return charging;
        });
    }

    private String charged(Duration maxWait) throws Exception {
        return idempotence.execute(
                call,
                IdempotencePolicy.defaults(),
                maxWait,
                ResultCodec.text(),
                execution -> "run " + runs.incrementAndGet());
    }

    @Test
    void theResultOfAFutureIsStoredWhenItCompletes() throws Exception {
        CompletableFuture<String> first = charge(Duration.ZERO);
        assertThat(refusalOf(() -> charged(Duration.ZERO))).isEqualTo(Refusal.IN_PROGRESS);
        charging.complete("charged");
        assertThat(first).isCompletedWithValue("charged");
        assertThat(charge(Duration.ZERO)).isCompletedWithValue("charged");
        assertThat(charged(Duration.ZERO)).isEqualTo("charged");
        assertThat(runs).hasValue(1);
    }

    @Test
    void aFutureWithoutAResultIsReplayedAsOne() {
        charging.complete(null);
        assertThat(charge(Duration.ZERO)).isCompletedWithValue(null);
        assertThat(charge(Duration.ZERO)).isCompletedWithValue(null);
        assertThat(runs).hasValue(1);
    }

    @Test
    void theFailureOfAFutureIsTheCallersAndThePolicyDecides() {
        CompletableFuture<String> first = charge(Duration.ZERO);
        charging.completeExceptionally(new IllegalStateException("no money"));
        assertThatThrownBy(first::join)
                .isInstanceOf(CompletionException.class)
                .cause()
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("no money");
        charge(Duration.ZERO);
        assertThat(runs).as("released").hasValue(2);
    }

    @Test
    void whatIsThrownBeforeThereIsAFutureFailsTheFuture() {
        CompletableFuture<String> thrown = idempotence.executeAsync(
                call, IdempotencePolicy.defaults(), Duration.ZERO, ResultCodec.text(), execution -> {
                    throw new IllegalStateException("no line");
                });
        assertThatThrownBy(thrown::join).cause().hasMessage("no line");
        CompletableFuture<String> none = idempotence.executeAsync(
                call, IdempotencePolicy.defaults(), Duration.ZERO, ResultCodec.text(), execution -> null);
        assertThatThrownBy(none::join).cause().hasMessageContaining("returned null instead of a future");
    }

    @Test
    void aDuplicateOfAFutureWaitsWithoutAThread() {
        CompletableFuture<String> first = charge(Duration.ZERO);
        CompletableFuture<String> duplicate = charge(LONG);
        assertThat(duplicate).isNotDone();
        charging.complete("charged");
        assertThat(first).isCompletedWithValue("charged");
        assertThat(duplicate).succeedsWithin(LONG).isEqualTo("charged");
        assertThat(runs).hasValue(1);
    }

    @Test
    void aDuplicateWaitsForTheResultOfTheFirst() throws Exception {
        charge(Duration.ZERO);
        Future<String> duplicate = executor.submit(() -> charged(LONG));
        charging.complete("charged");
        assertThat(duplicate.get(1, TimeUnit.MINUTES)).isEqualTo("charged");
    }

    @Test
    void aDuplicateThatWaitedLongEnoughIsRefused() {
        charge(Duration.ZERO);
        assertThat(refusalOf(() -> charged(Duration.ofMillis(20)))).isEqualTo(Refusal.IN_PROGRESS);
        assertThatThrownBy(charge(Duration.ofMillis(20))::join).cause().isInstanceOf(ExecutionRefusedException.class);
    }

    @Test
    void aDuplicateThatIsInterruptedIsRefused() throws Exception {
        charge(Duration.ZERO);
        CountDownLatch began = new CountDownLatch(1);
        CompletableFuture<Boolean> stillInterrupted = new CompletableFuture<>();
        Thread duplicate = new Thread(() -> {
            began.countDown();
            Refusal refusal = refusalOf(() -> charged(LONG));
            stillInterrupted.complete(
                    refusal == Refusal.IN_PROGRESS && Thread.currentThread().isInterrupted());
        });
        duplicate.start();
        began.await();
        duplicate.interrupt();
        assertThat(stillInterrupted).succeedsWithin(LONG).isEqualTo(true);
    }

    @Test
    void aThreadIsPartOfTheExecutionsThatItRuns() throws Exception {
        assertThat(IdempotentExecution.current()).isEmpty();
        String ids = idempotence.execute(
                IdempotenceId.of("outer"),
                () -> idempotence.execute(
                        IdempotenceId.of("inner"),
                        () -> executor.submit(IdempotentExecution::current).get() + " "
                                + IdempotentExecution.current().stream()
                                        .map(execution -> execution.id().value())
                                        .toList()));
        assertThat(ids).as("another thread, this thread").isEqualTo("[] [inner, outer]");
        assertThat(IdempotentExecution.current()).isEqualTo(List.of());
    }

    @Test
    void aCarriedTaskIsPartOfTheExecutionsOfTheThreadThatPassesItOn() throws Exception {
        StringBuilder ids = new StringBuilder();
        Runnable task = () -> IdempotentExecution.current()
                .forEach(execution -> ids.append(execution.id()).append(' '));
        assertThat(IdempotentExecution.carried(task)).as("outside of any").isSameAs(task);
        idempotence.execute(
                IdempotenceId.of("outer"),
                () -> idempotence.execute(IdempotenceId.of("inner"), () -> {
                    executor.submit(IdempotentExecution.carried(task)).get();
                    return "done";
                }));
        assertThat(ids).hasToString("inner outer ");
        assertThat(executor.submit(IdempotentExecution::current).get()).isEmpty();
    }
}
