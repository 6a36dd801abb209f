package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.idempotence.OnAbandoned;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.it.fault.ProviderProcess;
import io.idempotence.server.redis.EmbeddedRedis;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The provider's process is killed in the middle of a payment, while a client waits for it (promises P6 and P7). */
@Tag("all")
class PairCrashIT extends PairTestBase {
    @TempDir
    private Path directory;

    private final ExecutorService caller = Executors.newSingleThreadExecutor();
    private EmbeddedRedis redis;
    private Path paid;

    @BeforeEach
    void start() throws IOException {
        redis = EmbeddedRedis.start();
        paid = Files.createFile(directory.resolve("ledger"));
    }

    @AfterEach
    void stop() {
        caller.shutdownNow();
        redis.close();
    }

    @ParameterizedTest
    @CsvSource({"before,0", "after,1"})
    void killedAroundThePaymentTheCallEndsInATypedUnknownAndIsNotPaidAgain(String when, int payments) throws Exception {
        try (ProviderProcess first = ProviderProcess.start(redis.address(), paid, OnAbandoned.REFUSE);
                ProviderProcess second = ProviderProcess.start(redis.address(), paid, OnAbandoned.REFUSE)) {
            Payments client = client(first, second);
            CompletableFuture<FeignOutcomeUnknownException> end = CompletableFuture.supplyAsync(
                    () -> catchThrowableOfType(
                            FeignOutcomeUnknownException.class, () -> client.payAndHold(when, "order-1")),
                    caller);
            first.awaitHold();
            first.kill();
            FeignOutcomeUnknownException unknown = end.get(60, TimeUnit.SECONDS);
            assertThat(unknown.status()).as("the second instance's refusal").isEqualTo(409);
            assertThat(Files.readAllLines(paid)).hasSize(payments);

            FeignOutcomeUnknownException again = catchThrowableOfType(
                    FeignOutcomeUnknownException.class,
                    () -> IdempotenceScope.with(unknown.id(), () -> client.payAndHold("never", "order-1")));
            assertThat(again.attempts()).isEqualTo(1);
            assertThat(Files.readAllLines(paid)).hasSize(payments);
        }
    }

    @Test
    void killedAfterThePaymentTheCallSucceedsWhereTheOperationMayRunAgain() throws Exception {
        try (ProviderProcess first = ProviderProcess.start(redis.address(), paid, OnAbandoned.RE_EXECUTE);
                ProviderProcess second = ProviderProcess.start(redis.address(), paid, OnAbandoned.RE_EXECUTE)) {
            Payments client = client(first, second);
            CompletableFuture<String> end =
                    CompletableFuture.supplyAsync(() -> client.payAndHold("after-first", "order-1"), caller);
            first.awaitHold();
            first.kill();
            assertThat(end.get(60, TimeUnit.SECONDS)).isEqualTo("paid, taken over");
            assertThat(Files.readAllLines(paid)).hasSize(1);
        }
    }

    private Payments client(ProviderProcess first, ProviderProcess second) {
        return through((request, n) -> NONE, fast(), okHttp(), 60_000, first.uri("/"), second.uri("/"));
    }
}
