package io.idempotence.server;

import static io.idempotence.server.FaultyProvider.ID;
import static io.idempotence.server.FaultyProvider.KEY;
import static io.idempotence.server.FaultyProvider.SHORT_LEASE;
import static io.idempotence.server.FaultyProvider.key;
import static io.idempotence.server.FaultyProvider.unavailable;
import static io.idempotence.server.Refusals.refusalOf;
import static io.idempotence.server.storage.FaultyStorage.hang;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageUnavailableException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** T21: a claim under which nothing runs, because its reply was lost, is given back. */
class UnusedClaimTest {
    /** How long a busy machine may take. */
    private static final Duration BUSY = Duration.ofMinutes(1);

    @RegisterExtension
    private final FaultyProvider provider = new FaultyProvider();

    private final IdempotenceStorage memory = provider.memory;
    private final FaultyStorage storage = provider.storage;

    @Test
    @DisplayName(
            "T21: a claim that its storage refused and could not give back is given back later, and not claimed again")
    void aClaimThatItsStorageCouldNotGiveBackIsGivenBackLater() {
        storage.after((call, which) -> {
            if (call == FaultyStorage.Call.CLAIM && storage.count(call) == 1) {
                throw StorageUnavailableException.givingBack("too few replicas", null, false);
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                .until(() -> idempotence.execute(ID, provider::work).equals("run 1"));
        assertThat(provider.runs).hasValue(1);
    }

    @Test
    @DisplayName("T21: a claim that its storage refused and gave back is not claimed again")
    void aClaimThatItsStorageGaveBackIsNotAskedForAgain() {
        storage.after((call, which) -> {
            if (call == FaultyStorage.Call.CLAIM) {
                throw StorageUnavailableException.givingBack("too few replicas", null, true);
            }
        });
        assertThatThrownBy(() -> provider.idempotence().saveIfAbsent(ID))
                .isInstanceOf(StorageUnavailableException.class);
        assertThat(storage.count(FaultyStorage.Call.CLAIM)).isEqualTo(1);
    }

    @Test
    @DisplayName("an ID that was saved although no reply came is not called seen: it is given back")
    void anIdSavedInVainIsGivenBack() {
        AtomicBoolean repliesLost = new AtomicBoolean(true);
        storage.after((call, which) -> {
            if (call == Call.CLAIM && repliesLost.get()) {
                throw unavailable();
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThatThrownBy(() -> idempotence.saveIfAbsent(ID)).isInstanceOf(StorageUnavailableException.class);
        assertThat(provider.events).containsExactly(IdempotenceEvent.STORAGE_ERROR);
        repliesLost.set(false);
        // A message that is delivered again: either not yet, or now; never "seen before".
        AtomicBoolean saved = new AtomicBoolean();
        await().until(() -> {
            try {
                assertThat(idempotence.saveIfAbsent(ID)).isTrue();
                saved.set(true);
            } catch (StorageUnavailableException e) {
                assertThat(e).hasMessageContaining("is being released");
            }
            return saved.get();
        });
        assertThat(idempotence.saveIfAbsent(ID)).isFalse();
    }

    /** The thread of the give-backs waits for one to become due. */
    private static boolean nothingIsGivenBack() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("idempotence-give-backs"))
                .allMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING);
    }

    @Test
    void anIdThatIsGivenBackWhileItIsAskedForIsNotCalledSeen() {
        AtomicInteger claims = new AtomicInteger();
        storage.after((call, which) -> {
            if (call == Call.CLAIM && claims.incrementAndGet() <= 2) {
                throw unavailable();
            }
            if (call == Call.CLAIM && Thread.currentThread().getName().equals("redelivery")) {
                // The reply "it is there" is under way while the ID is given back.
                await().atMost(BUSY)
                        .until(() -> memory.find(RecordKind.SAVE.key("default", IdempotentCall.of(ID)))
                                // A later fence is that of the redelivery: it was given back before.
                                .filter(record -> record.state() != State.RELEASED && record.fence() == 1)
                                .isEmpty());
                await().atMost(BUSY).until(UnusedClaimTest::nothingIsGivenBack);
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThatThrownBy(() -> idempotence.saveIfAbsent(ID)).isInstanceOf(StorageUnavailableException.class);
        CompletableFuture<Object> reply = new CompletableFuture<>();
        new Thread(
                        () -> {
                            try {
                                reply.complete(idempotence.saveIfAbsent(ID));
                            } catch (StorageUnavailableException e) {
                                reply.complete(e);
                            }
                        },
                        "redelivery")
                .start();
        assertThat(reply.orTimeout(2 * BUSY.toSeconds(), TimeUnit.SECONDS).join())
                .isNotEqualTo(false);
    }

    @Test
    @DisplayName("T21: a claim that never arrived leaves a released record, which keeps it out if it comes late")
    void anIdIsNotSavedByAClaimThatComesLate() {
        AtomicReference<ClaimRequest> late = new AtomicReference<>();
        AtomicBoolean isDown = new AtomicBoolean(true);
        Object wire = Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {IdempotenceStorage.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("claim") && isDown.get()) {
                        late.compareAndSet(null, (ClaimRequest) arguments[0]);
                        throw unavailable();
                    }
                    return method.invoke(memory, arguments);
                });
        Idempotence idempotence = provider.over((IdempotenceStorage) wire, SHORT_LEASE);
        assertThatThrownBy(() -> idempotence.saveIfAbsent(ID)).isInstanceOf(StorageUnavailableException.class);
        isDown.set(false);
        await().until(() -> memory.find(late.get().key())
                .filter(record -> record.state() == State.RELEASED)
                .isPresent());

        assertThat(memory.claim(late.get())).isInstanceOf(ClaimResult.InProgress.class);

        assertThat(provider.over(memory, SHORT_LEASE).saveIfAbsent(ID)).isTrue();
    }

    @Test
    @DisplayName("T21: the claim of a give-back is not called saved by another process")
    void claimOfAGiveBackIsNotReportedAsASavedId() {
        Idempotence other = provider.over(memory, SHORT_LEASE);
        List<Object> replies = new CopyOnWriteArrayList<>();
        AtomicInteger claims = new AtomicInteger();
        storage.before((call, which) -> {
            if (call == Call.CLAIM && claims.incrementAndGet() <= 2) {
                throw unavailable();
            }
        });
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                try {
                    replies.add(other.saveIfAbsent(ID));
                } catch (StorageUnavailableException e) {
                    replies.add(e);
                }
            }
        });
        assertThatThrownBy(() -> provider.idempotence().saveIfAbsent(ID))
                .isInstanceOf(StorageUnavailableException.class);
        await().until(() -> replies.size() == 1);
        assertThat(replies.get(0)).isInstanceOf(StorageUnavailableException.class);
    }

    @Test
    @DisplayName("T21: nothing abandoned is taken over by a claim under which nothing will run")
    void givingBackTakesNothingOver() throws Exception {
        IdempotenceStorage other = IdempotenceStorage.inMemory();
        other.claim(new ClaimRequest(
                KEY, Fingerprint.NONE, new Owner(1, 2), Duration.ofMillis(1), Duration.ofHours(1), false));
        await().until(() -> other.find(KEY).orElseThrow().state() == State.ABANDONED);
        FaultyStorage faulty = new FaultyStorage(other).before((call, which) -> {
            if (call == Call.CLAIM) {
                throw unavailable();
            }
        });
        Idempotence idempotence = provider.over(faulty, SHORT_LEASE);
        assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        faulty.before((call, which) -> {});
        await().until(() -> faulty.count(Call.CLAIM) + faulty.count(Call.FIND) >= 3);
        idempotence.close();
        assertThat(other.find(KEY).orElseThrow().state()).isEqualTo(State.ABANDONED);
        // A take-over that was taken back would be abandoned, too.
        assertThat(other.find(KEY).orElseThrow().fence()).isEqualTo(1);
    }

    @Test
    @DisplayName("T21: a claim whose replies are lost is given back, also while large completions wait")
    void aLostClaimIsGivenBackWhileLargeCompletionsWait() throws Exception {
        Idempotence idempotence = provider.idempotence();
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw unavailable();
            }
        });
        String large = "x".repeat(17 << 20);
        idempotence.execute(IdempotenceId.of("large"), () -> large);
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                throw unavailable();
            }
        });
        assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        storage.after((call, which) -> {});
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        assertThat(memory.find(key("large")).orElseThrow().state()).isEqualTo(State.IN_PROGRESS);
    }

    @Test
    @DisplayName("T21: a claim under which nothing ran is given back however long the outage outlasts its lease")
    void aClaimIsGivenBackHoweverLongTheOutageOutlastsItsLease() {
        storage.after((call, which) -> {
            throw unavailable();
        });
        assertThat(provider.refusal(provider.idempotence(SHORT_LEASE))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        storage.before((call, which) -> {
            throw unavailable();
        });
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.ABANDONED);
        long claims = storage.count(Call.CLAIM);
        await().until(() -> storage.count(Call.CLAIM) > claims + 1);
        storage.before((call, which) -> {}).after((call, which) -> {});

        await().until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        assertThat(provider.events)
                .doesNotContain(IdempotenceEvent.UNKNOWN)
                .containsOnlyOnce(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("T21: a claim is given back while another one is given back to a storage that hangs")
    void aGiveBackThatHangsHoldsUpNoOther() {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        storage.before((call, which) -> {
                    if (Thread.currentThread().getName().equals("idempotence-give-backs") && !which.equals(KEY)) {
                        hangs.countDown();
                        hang(goOn);
                    }
                })
                .after((call, which) -> {
                    if (call == Call.CLAIM && !Thread.currentThread().getName().startsWith("idempotence-")) {
                        throw unavailable();
                    }
                });
        Idempotence idempotence = provider.idempotence();
        try {
            assertThat(refusalOf(() -> idempotence.execute(IdempotenceId.of("on-a-dead-shard"), provider::work)))
                    .isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            await().until(() -> hangs.getCount() == 0);
            assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            await().until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        } finally {
            goOn.countDown();
        }
    }

    @Test
    @DisplayName("T22: ends are recorded while claims are given back to a storage that hangs, as on a dead shard")
    void giveBacksThatHangHoldUpNoCompletion() throws Exception {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicBoolean down = new AtomicBoolean(true);
        storage.before((call, which) -> {
            if (call == Call.CLAIM && !which.equals(KEY)) {
                if (Thread.currentThread().getName().startsWith("idempotence-")) {
                    hangs.countDown();
                    hang(goOn);
                }
                throw unavailable();
            }
            if (call == Call.COMPLETE && down.get()) {
                throw unavailable();
            }
        });
        Idempotence idempotence = provider.idempotence();
        try {
            // So few that the circuit breaker stays closed.
            for (int i = 0; i < 3; i++) {
                IdempotenceId lost = IdempotenceId.of("on-a-dead-shard-" + i);
                assertThat(refusalOf(() -> idempotence.execute(lost, provider::work)))
                        .isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            }
            hangs.await();
            idempotence.execute(ID, provider::work);
            down.set(false);
            await().until(() -> memory.find(KEY).orElseThrow().state() == State.COMPLETED);
        } finally {
            goOn.countDown();
        }
    }

    @Test
    @DisplayName("T21: a claim is given back whatever the storage throws after it has stored it")
    void aStoredClaimIsGivenBackWhateverTheStorageThrows() throws Exception {
        List<Throwable> failures = List.of(
                new IllegalStateException("a driver's bug"),
                new NumberFormatException("a reply that the driver cannot read"),
                new OutOfMemoryError("unable to create native thread"));
        Idempotence idempotence = provider.idempotence(SHORT_LEASE);
        for (Throwable failure : failures) {
            loseReplies(failure);
            assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            storage.after((call, which) -> {});
            await(failure.toString()).until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        }
        assertThat(provider.runs).hasValue(0);
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("T21: an ID that was saved before the storage threw is released, and nobody takes it for saved")
    void aSavedIdIsReleasedWhateverTheStorageThrows() {
        Idempotence idempotence = provider.idempotence();
        loseReplies(new IllegalStateException("a driver's bug"));
        assertThatThrownBy(() -> idempotence.saveIfAbsent(ID)).isInstanceOf(IllegalStateException.class);
        storage.after((call, which) -> {});
        await().until(() -> {
            try {
                return idempotence.saveIfAbsent(ID);
            } catch (StorageUnavailableException e) {
                return false;
            }
        });
    }

    @Test
    @DisplayName("T21: a claim whose reply was lost is given back whatever its second try throws")
    void aClaimIsGivenBackWhateverItsSecondTryThrows() {
        AtomicInteger claims = new AtomicInteger();
        storage.after((call, which) -> {
            if (call == Call.CLAIM && claims.getAndIncrement() == 0) {
                throw unavailable();
            } else if (call == Call.CLAIM && claims.get() == 2) {
                throw new IllegalStateException("a driver's bug");
            }
        });
        assertThat(provider.refusal(provider.idempotence())).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        assertThat(provider.runs).hasValue(0);
    }

    private void loseReplies(Throwable failure) {
        storage.after((call, which) -> {
            if (call == Call.CLAIM && failure instanceof Error error) {
                throw error;
            } else if (call == Call.CLAIM) {
                throw (RuntimeException) failure;
            }
        });
    }

    @Test
    @DisplayName("T21: a claim that certainly wrote nothing is not sent again, and nothing is given back")
    void aClaimThatWasNeverWrittenIsNeitherSentAgainNorGivenBack() throws Exception {
        for (StorageUnavailableException certain : List.of(
                StorageUnavailableException.notSent("no free connection", null),
                StorageUnavailableException.refused("out of memory", null))) {
            long before = storage.count(Call.CLAIM);
            storage.before((call, which) -> {
                throw certain;
            });
            Idempotence idempotence = provider.idempotence();
            assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            storage.before((call, which) -> {});
            idempotence.close();

            assertThat(storage.count(Call.CLAIM) - before).isEqualTo(1);
            assertThat(memory.find(KEY)).isEmpty();
        }
        assertThat(provider.idempotence().execute(ID, provider::work)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("T21: a claim whose reply was lost is given back although its second try was never sent")
    void aClaimWhoseSecondTryWasNeverSentIsGivenBack() {
        AtomicInteger claims = new AtomicInteger();
        storage.before((call, which) -> {
                    if (call == Call.CLAIM && claims.get() == 1) {
                        claims.incrementAndGet();
                        throw StorageUnavailableException.notSent("no free connection", null);
                    }
                })
                .after((call, which) -> {
                    if (call == Call.CLAIM && claims.getAndIncrement() == 0) {
                        throw unavailable();
                    }
                });
        assertThat(provider.refusal(provider.idempotence())).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        assertThat(provider.runs).hasValue(0);
    }
}
