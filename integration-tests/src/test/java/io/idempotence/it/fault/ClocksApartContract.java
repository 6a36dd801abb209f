package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Two instances, one with a clock an hour ahead of the storage's, one an hour behind: only the storage's own decides. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ClocksApartContract {
    @TempDir
    private static Path directory;

    private Path ledger;
    private ProviderProcess ahead;
    private ProviderProcess behind;

    /** Starts the storage, whose clock is right, and says where it is. */
    abstract String startStorage() throws Exception;

    abstract void stopStorage() throws Exception;

    @BeforeAll
    void start() throws Exception {
        String storage = startStorage();
        ledger = Files.createFile(directory.resolve("ledger"));
        ahead = provider(storage, Duration.ofHours(1));
        behind = provider(storage, Duration.ofHours(-1));
    }

    @AfterAll
    void stop() throws Exception {
        try (ProviderProcess first = ahead;
                ProviderProcess second = behind) {
            stopStorage();
        }
    }

    private ProviderProcess provider(String storage, Duration shift) throws IOException {
        ProviderProcess provider = ProviderProcess.start(
                List.of(ShiftedClock.option(directory, shift)), ShiftedProvider.class, storage, ledger.toString());
        for (String clock : List.of("millis ", "instant ", "date ")) {
            assertThat(Long.parseLong(provider.expect(clock)))
                    .as(clock)
                    .isCloseTo(
                            System.currentTimeMillis() + shift.toMillis(),
                            within(Duration.ofMinutes(10).toMillis()));
        }
        return provider;
    }

    private static String newId() {
        return UUID.randomUUID().toString();
    }

    private long payments() throws IOException {
        return Files.readAllLines(ledger).size();
    }

    /** To the one ahead a lease of the other would have been over for two hours. */
    @Test
    void aLiveLeaseIsLiveForBoth() throws Exception {
        String id = newId();
        long before = payments();
        String other = newId();
        CompletableFuture<HttpResponse<byte[]>> first = ahead.payAndHold(id, "after-first");
        CompletableFuture<HttpResponse<byte[]>> second = behind.payAndHold(other, "after-first");

        await().during(ProviderProcess.LEASE.plusMillis(200))
                .until(() -> "in-progress".equals(refusal(behind.pay(id)))
                        && "in-progress".equals(refusal(ahead.pay(other))));

        ahead.resume();
        behind.resume();
        assertThat(text(first.get())).isEqualTo("paid");
        assertThat(text(second.get())).isEqualTo("paid");
        assertThat(replayed(behind.pay(id))).isTrue();
        assertThat(replayed(ahead.pay(other))).isTrue();
        assertThat(payments()).isEqualTo(before + 2);
    }

    /** To the one behind the lease of the other would last for two hours more. */
    @Test
    void anAbandonedExecutionIsTakenOverAndItsLateOwnerIsFenced() throws Exception {
        String id = newId();
        long before = payments();
        CompletableFuture<HttpResponse<byte[]>> first = ahead.payAndHold(id, "after-first");
        ahead.pause();

        assertThat(text(behind.payWhenNotInProgress(id))).isEqualTo("paid, taken over");
        ahead.resume();

        assertThat(text(first.get())).isEqualTo("paid, taken over");
        assertThat(replayed(first.get())).isTrue();
        assertThat(payments()).isEqualTo(before + 1);
    }

    @Test
    void aResponseIsReplayedUntilItsRetentionIsOver() {
        String id = newId();
        String other = newId();
        assertThat(ahead.pay(id).statusCode()).isEqualTo(201);
        assertThat(behind.pay(other).statusCode()).isEqualTo(201);
        assertThat(replayed(behind.pay(id))).isTrue();
        assertThat(replayed(ahead.pay(other))).isTrue();

        await().until(() -> isNew(behind.pay(id)));
        await().until(() -> isNew(ahead.pay(other)));
    }

    private static boolean isNew(HttpResponse<byte[]> response) {
        return response.statusCode() == 201 && !replayed(response);
    }
}
