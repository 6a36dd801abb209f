package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Completion;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.args.ClientPauseMode;
import redis.clients.jedis.args.ClientType;
import redis.clients.jedis.params.ClientKillParams;

/** Completions that are sent to Redis together. */
@Tag("redis-7")
class RedisCompletionsTest extends RedisTestBase {
    private static final byte[] RESULT = {1, 2, 3};
    private static final byte[] NONSENSE = "nonsense".getBytes(StandardCharsets.US_ASCII);

    private final int most = storage.completionsPerRoundTrip();

    @AfterEach
    void goOn() {
        jedis.clientUnpause();
    }

    private static List<CompletionRequest> claimed(IdempotenceStorage by, int number) {
        return IntStream.range(0, number)
                .mapToObj(i -> new CompletionRequest(
                        Claims.claim(by, Claims.newKey()), new byte[] {(byte) i}, Claims.RETENTION))
                .toList();
    }

    private static void assertCompleted(List<CompletionRequest> requests) {
        assertThat(requests)
                .allSatisfy(request -> assertThat(state(request.claim().key())).isEqualTo(State.COMPLETED));
    }

    private static State state(StorageKey of) {
        return storage.find(of).map(IdempotenceRecord::state).orElseThrow();
    }

    private static byte[] raw(StorageKey of) {
        return of.value().getBytes(StandardCharsets.US_ASCII);
    }

    @Test
    void aListOfThemCostsOneRoundTrip() throws IOException {
        RoundTrips trips = new RoundTrips();
        try (DelayProxy wire = new DelayProxy(redis.port(), trips);
                RedisIdempotenceStorage counted = EmbeddedRedis.connect(wire.address())) {
            List<CompletionRequest> requests = claimed(counted, most);
            storage.completeAll(claimed(storage, 1));
            trips.since();

            assertThat(counted.completeAll(requests)).hasSize(most);
            assertThat(trips.since()).isEqualTo(1);
            assertCompleted(requests);
        }
    }

    @Test
    void anErrorConcernsOnlyItsOwnCompletion() {
        List<CompletionRequest> requests = claimed(storage, 3);
        jedis.set(raw(requests.get(1).claim().key()), NONSENSE);

        List<Supplier<WriteResult>> outcomes = storage.completeAll(requests);

        assertThat(outcomes.get(0).get()).isEqualTo(new WriteResult.Done());
        assertThatThrownBy(outcomes.get(1)::get).isInstanceOf(CorruptRecordException.class);
        assertThat(outcomes.get(2).get()).isEqualTo(new WriteResult.Done());
        assertCompleted(List.of(requests.get(0), requests.get(2)));
    }

    @Test
    void aScriptThatTheServerHasForgottenIsSentAgain() {
        List<CompletionRequest> requests = claimed(storage, 2);
        jedis.scriptFlush();

        assertThat(storage.completeAll(requests))
                .allSatisfy(outcome -> assertThat(outcome.get()).isEqualTo(new WriteResult.Done()));
        assertCompleted(requests);
    }

    @Test
    void aBrokenConnectionLeavesAllInDoubtAndASecondTryIsSafe() {
        List<CompletionRequest> requests = claimed(storage, most);
        jedis.clientPause(Duration.ofMinutes(1).toMillis(), ClientPauseMode.WRITE);
        CompletableFuture<?> sent = CompletableFuture.runAsync(() -> storage.completeAll(requests));
        await().until(() -> {
            if (jedis.clientList().contains("cmd=evalsha")) {
                jedis.clientKill(new ClientKillParams().type(ClientType.NORMAL).skipMe(ClientKillParams.SkipMe.YES));
            }
            return sent.isDone();
        });
        jedis.clientUnpause();

        assertThatThrownBy(sent::join)
                .isInstanceOf(CompletionException.class)
                .cause()
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isFalse());
        assertThat(storage.completeAll(requests))
                .allSatisfy(outcome -> assertThat(outcome.get()).isEqualTo(new WriteResult.Done()));
        assertCompleted(requests);
    }

    @Test
    void tooFewReplicasFailTheWholeList() {
        try (RedisIdempotenceStorage replicated = EmbeddedRedis.builder(redis.address())
                .waitForReplicas(1, Duration.ofMillis(10))
                .build()) {
            storage.completeAll(claimed(storage, 1));
            List<CompletionRequest> requests = claimed(storage, 2);
            assertThatThrownBy(() -> replicated.completeAll(requests))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("0 of 1 replicas");
            assertCompleted(requests);
        }
    }

    @Test
    void aStorageThatIsNotConnectedYetSendsEachAlone() {
        try (RedisIdempotenceStorage lazy =
                EmbeddedRedis.builder(redis.address()).lazyStart().build()) {
            assertThat(lazy.completionsPerRoundTrip()).isEqualTo(1);
            List<CompletionRequest> requests = claimed(storage, 2);
            lazy.completeAll(requests);
            assertThat(lazy.completionsPerRoundTrip()).isEqualTo(most);
            assertCompleted(requests);
        }
    }

    /** Redis is paused, so that completions wait while a record is damaged and the scripts are forgotten. */
    @Test
    void completionsAfterTheResponseSurviveForgottenScriptsAndADamagedNeighbour() {
        ConcurrentLinkedQueue<String> failures = new ConcurrentLinkedQueue<>();
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .completion(Completion.AFTER_RESPONSE)
                .build();
        try (RedisIdempotenceStorage own = redis.connect();
                Idempotence idempotence = Idempotence.builder(own)
                        .policy(policy)
                        .listener((event, id) -> {
                            if (event == IdempotenceEvent.STORAGE_ERROR) {
                                failures.add(id.value());
                            }
                        })
                        .build()) {
            List<ClaimedExecution> executions = new ArrayList<>();
            for (int i = 0; i < most; i++) {
                IdempotentCall call =
                        IdempotentCall.of(IdempotenceId.of(UUID.randomUUID().toString()));
                executions.add((ClaimedExecution) idempotence.engine().claim(call, policy));
            }
            ClaimedExecution damaged = executions.get(most / 2);
            jedis.set(raw(damaged.key()), NONSENSE);
            jedis.scriptFlush();
            jedis.clientPause(Duration.ofMinutes(1).toMillis(), ClientPauseMode.WRITE);
            // Nobody waits for Redis.
            for (ClaimedExecution execution : executions) {
                assertThat(execution.finish(Verdict.KEEP, RESULT)).isEmpty();
            }
            jedis.clientUnpause();

            for (ClaimedExecution execution : executions) {
                if (execution != damaged) {
                    await().until(() -> state(execution.key()), State.COMPLETED::equals);
                }
            }
            await().until(() -> failures.contains(damaged.id().value()));
            assertThat(failures).containsOnly(damaged.id().value());
            assertThat(jedis.get(raw(damaged.key()))).isEqualTo(NONSENSE);
        }
    }
}
