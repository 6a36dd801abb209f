package io.idempotence.cli;

import static io.idempotence.cli.ToolOnRedis.LEASE;
import static io.idempotence.cli.ToolOnRedis.RETENTION;
import static io.idempotence.cli.ToolOnRedis.newId;
import static io.idempotence.cli.ToolOnRedis.request;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands that change records, resolve and delete, and the questions that they ask first. */
class ResolveAndDeleteTest {
    @RegisterExtension
    private final ToolOnRedis tool = new ToolOnRedis();

    private final RedisIdempotenceStorage storage = tool.storage;
    private final IdempotenceAdmin admin = tool.admin;
    private final ToolOnRedis.Person person = tool.person;

    @Test
    void resolvesAsApplied() throws IOException {
        Claim abandoned = tool.abandon();

        assertThat(tool.run(
                        "resolve",
                        "--key",
                        abandoned.key().value(),
                        "--applied",
                        "--yes",
                        "--json",
                        "--retention",
                        "2h"))
                .isZero();

        assertThat(tool.json().get("resolved").asBoolean()).isTrue();
        assertThat(tool.json().get("as").asText()).isEqualTo("applied");
        assertThat(tool.json().get("record").get("state").asText()).isEqualTo("completed");
        assertThat(tool.json().get("record").get("retentionLeftMillis").asLong())
                .isBetween(7_100_000L, 7_200_000L);
        assertThat(storage.claim(request(abandoned.key(), RETENTION))).isInstanceOf(ClaimResult.Completed.class);
        assertThat(person.questions).isEmpty();
    }

    @Test
    void resolvesAnIdAsNotAppliedAfterAsking() {
        IdempotenceId id = newId();
        StorageKey key = admin.requestKey(id, "");
        tool.claim(key, LEASE);
        tool.awaitAbandoned(key);
        person.answers = question -> question.contains("NO effect");

        assertThat(tool.run("resolve", id.value(), "--not-applied")).isZero();

        assertThat(tool.errors()).as("the record, shown before the question").contains(key.value());
        assertThat(tool.output()).startsWith("resolved as not applied");
        assertThat(storage.claim(request(key, RETENTION)))
                .isInstanceOfSatisfying(
                        ClaimResult.Claimed.class,
                        claimed -> assertThat(claimed.claim().fence()).isEqualTo(2));
    }

    @Test
    void doesNothingWithoutAYes() {
        StorageKey key = tool.abandon().key();

        assertThat(tool.run("resolve", "--key", key.value(), "--applied")).isEqualTo(1);
        assertThat(tool.run("delete", "--key", key.value(), "--force")).isEqualTo(1);

        assertThat(person.questions).hasSize(2);
        assertThat(tool.errors()).contains("nothing was changed");
        assertThat(tool.state(key)).isEqualTo(State.ABANDONED);
    }

    @Test
    void refusesToChangeWhenItCannotAsk() {
        StorageKey key = tool.abandon().key();
        person.isThere = false;

        assertThat(tool.run("resolve", "--key", key.value(), "--applied")).isEqualTo(2);
        assertThat(tool.errors()).contains("no terminal").contains("--yes");
        assertThat(tool.run("delete", "--key", key.value(), "--force")).isEqualTo(2);

        assertThat(person.questions).isEmpty();
        assertThat(tool.state(key)).isEqualTo(State.ABANDONED);
    }

    @Test
    void changeDuringAPersonsDecisionWins() throws IOException {
        Claim late = tool.abandon();
        person.answers = question -> {
            storage.complete(late, new byte[] {1, 2}, RETENTION);
            return true;
        };

        assertThat(tool.run("resolve", "--key", late.key().value(), "--not-applied", "--json"))
                .isEqualTo(1);

        assertThat(tool.errors()).contains("has changed");
        assertThat(tool.json().get("resolved").asBoolean()).isFalse();
        assertThat(tool.state(late.key())).isEqualTo(State.COMPLETED);
    }

    @Test
    void recordThatIsAlreadyAsRequestedIsNoFailure() throws IOException {
        for (String[] options : new String[][] {{"--applied"}, {"--not-applied"}, {"--applied", "--json"}}) {
            StorageKey key = tool.abandon().key();
            boolean applied = options[0].equals("--applied");
            person.answers = question -> {
                admin.resolve(admin.find(key).orElseThrow(), applied ? Resolution.APPLIED : Resolution.NOT_APPLIED);
                return true;
            };
            List<String> args = new ArrayList<>(List.of("resolve", "--key", key.value()));
            args.addAll(List.of(options));

            assertThat(tool.run(args.toArray(String[]::new))).isZero();

            if (options.length > 1) {
                assertThat(tool.json().get("resolved").asBoolean()).isTrue();
            } else {
                assertThat(tool.output()).startsWith(applied ? "already completed" : "already released");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"resolve --applied", "delete"})
    void reportsTheKindOfRecordThatAnIdHas(String command) {
        IdempotenceId id = newId();
        tool.claim(admin.executeKey(id), RETENTION);
        List<String> args = new ArrayList<>(List.of(command.split(" ")));
        args.addAll(List.of(id.value(), "--yes"));

        assertThat(tool.run(args.toArray(String[]::new))).isEqualTo(1);

        assertThat(tool.errors()).contains("no record: the ID has one of another kind; add --kind execute");
    }

    @Test
    void reportsInJsonThatNothingIsResolved() throws IOException {
        assertThat(tool.run("resolve", "never-seen", "--applied", "--yes", "--json"))
                .isEqualTo(1);
        assertThat(tool.json().get("resolved").asBoolean()).isFalse();
    }

    /** A script took the 0 of an output that nobody reads for a decision that was recorded. */
    @ParameterizedTest
    @ValueSource(strings = {"resolve --applied", "delete --force"})
    void reportsByItsExitCodeThatNothingWasDoneThoughNobodyReads(String command) {
        List<String> args = new ArrayList<>(List.of(command.split(" ")));
        args.addAll(List.of("never-seen", "--yes", "--json"));

        assertThat(tool.run(ToolOnRedis.CLOSED_PIPE, args.toArray(String[]::new)))
                .isEqualTo(1);
        assertThat(tool.errors()).contains("no record");
    }

    /** Standard output was empty, and the reader of the JSON failed or kept an old value. */
    @Test
    void reportsInJsonThatNothingWasChanged() throws IOException {
        StorageKey key = tool.abandon().key();
        for (String command : List.of("resolve --applied", "delete --force", "delete --yes")) {
            List<String> args = new ArrayList<>(List.of(command.split(" ")));
            args.addAll(List.of("--key", key.value(), "--json"));

            assertThat(tool.run(args.toArray(String[]::new))).isEqualTo(1);

            String done = command.startsWith("resolve") ? "resolved" : "deleted";
            assertThat(tool.json().path(done).isBoolean()).as(command).isTrue();
            assertThat(tool.json().get(done).asBoolean()).isFalse();
        }
    }

    @Test
    void resolvesOnlyTheUncertain() {
        StorageKey running = tool.claim(admin.executeKey(newId()), RETENTION).key();

        assertThat(tool.run("resolve", "--key", running.value(), "--applied", "--yes"))
                .isEqualTo(1);
        assertThat(tool.errors()).contains("is in-progress");
        assertThat(tool.run("resolve", "never-seen", "--applied", "--yes")).isEqualTo(1);
        assertThat(tool.errors()).contains("no record");
        assertThat(tool.state(running)).isEqualTo(State.IN_PROGRESS);
    }

    @Test
    void deletesOneRecord() throws IOException {
        StorageKey key = tool.claim(admin.savedKey(new IdempotenceId("order-8")), RETENTION)
                .key();
        person.answers = question -> true;

        assertThat(tool.run("delete", "order-8", "--kind", "saved")).isZero();

        assertThat(admin.find(key)).isEmpty();
        assertThat(tool.run("delete", "order-8", "--kind", "saved", "--yes", "--json"))
                .isEqualTo(1);
        assertThat(tool.json().get("deleted").asBoolean()).isFalse();
    }

    @Test
    void deletesWhatRunsOrIsUncertainOnlyByForce() {
        StorageKey running = tool.claim(admin.executeKey(newId()), RETENTION).key();
        StorageKey abandoned = tool.abandon().key();

        assertThat(tool.run("delete", "--key", running.value(), "--yes")).isEqualTo(1);
        assertThat(tool.errors()).contains("its operation still runs").contains("--force");
        assertThat(tool.run("delete", "--key", abandoned.value(), "--yes")).isEqualTo(1);
        assertThat(tool.errors()).contains("use resolve").contains("--force");
        assertThat(tool.state(running)).isEqualTo(State.IN_PROGRESS);
        assertThat(tool.state(abandoned)).isEqualTo(State.ABANDONED);

        assertThat(tool.run("delete", "--key", running.value(), "--yes", "--force"))
                .isZero();
        assertThat(admin.find(running)).isEmpty();
    }

    /** A script deleted it without a question, and the next retry paid again. */
    @Test
    void deletesWhatIsDoneOnlyByForce() {
        Claim done = tool.claim(admin.executeKey(newId()), RETENTION);
        storage.complete(done, new byte[] {1, 2}, RETENTION);

        assertThat(tool.run("delete", "--key", done.key().value(), "--yes")).isEqualTo(1);
        assertThat(tool.errors()).contains("its operation is done").contains("--force");
        assertThat(tool.state(done.key())).isEqualTo(State.COMPLETED);

        assertThat(tool.run("delete", "--key", done.key().value(), "--yes", "--force"))
                .isZero();
        assertThat(admin.find(done.key())).isEmpty();
    }

    @Test
    void deletesWhatIsReleasedWithoutForce() {
        Claim released = tool.claim(admin.executeKey(newId()), RETENTION);
        storage.release(released, RETENTION);

        assertThat(tool.run("delete", "--key", released.key().value(), "--yes")).isZero();
    }

    /** After a return to an older version it may be an intact record of a payment. */
    @Test
    void deletesWhatItCannotReadOnlyByForce() {
        StorageKey key = admin.executeKey(newId());
        tool.damage(key);

        assertThat(tool.run("delete", "--key", key.value(), "--yes")).isEqualTo(1);
        assertThat(tool.errors()).contains("a newer version").contains("--force");

        assertThat(tool.run("delete", "--key", key.value(), "--yes", "--force")).isZero();
        assertThat(admin.find(key)).isEmpty();
    }

    /** The list ended before the others, and the JSON without its bracket. */
    @Test
    void findShowsTheOtherRecordsOfAnIdWithOneThatItCannotRead() throws IOException {
        IdempotenceId id = newId();
        tool.damage(admin.requestKey(id, ""));
        tool.claim(admin.executeKey(id), RETENTION);

        assertThat(tool.run("find", id.value(), "--json")).isEqualTo(1);

        assertThat(tool.json()).hasSize(1);
        assertThat(tool.errors()).contains("request: ");
    }

    @Test
    void deletesNothingThatHasChangedWhileAPersonThought() {
        Claim late = tool.abandon();
        person.answers = question -> {
            storage.complete(late, new byte[] {1, 2}, RETENTION);
            return true;
        };

        assertThat(tool.run("delete", "--key", late.key().value(), "--force")).isEqualTo(1);

        assertThat(tool.errors()).contains("has changed");
        assertThat(tool.state(late.key())).isEqualTo(State.COMPLETED);
    }

    /** It was deleted while its operation ran, and the next duplicate ran the operation a second time. */
    @Test
    void deletesNothingThatIsClaimedAgainBetweenTheLookAndTheDeletion() throws IOException {
        for (boolean json : List.of(true, false)) {
            StorageKey key = released();
            FaultyStorage racing = claimedAgainBeforeTheDeletion();

            List<String> args = new ArrayList<>(List.of("delete", "--key", key.value(), "--yes"));
            if (json) {
                args.add("--json");
            }
            assertThat(tool.deleteThrough(racing, args.toArray(String[]::new))).isEqualTo(1);

            assertThat(tool.errors())
                    .contains("nothing was deleted: the record has changed since it was read, and is in-progress now");
            if (json) {
                assertThat(tool.json().get("deleted").asBoolean()).isFalse();
                assertThat(tool.json().get("record").get("state").asText()).isEqualTo("in-progress");
            }
            assertThat(tool.state(key)).isEqualTo(State.IN_PROGRESS);
        }
    }

    /** With {@code --json} there was no output at all. */
    @Test
    void deletesNothingThatIsDamagedBetweenTheLookAndTheDeletion() throws IOException {
        StorageKey key = released();
        FaultyStorage racing = new FaultyStorage(storage).before((call, deleted) -> {
            if (call == FaultyStorage.Call.DELETE_UNCHANGED) {
                tool.damage(deleted);
            }
        });

        assertThat(tool.deleteThrough(racing, "delete", "--key", key.value(), "--yes", "--json"))
                .isEqualTo(1);

        assertThat(tool.errors()).contains("nothing was deleted", "unreadable");
        assertThat(tool.json().get("deleted").asBoolean()).isFalse();
    }

    private StorageKey released() {
        Claim released = tool.claim(admin.executeKey(newId()), RETENTION);
        storage.release(released, RETENTION);
        return released.key();
    }

    private FaultyStorage claimedAgainBeforeTheDeletion() {
        return new FaultyStorage(storage).before((call, key) -> {
            if (call == FaultyStorage.Call.DELETE || call == FaultyStorage.Call.DELETE_UNCHANGED) {
                tool.claim(key, RETENTION);
            }
        });
    }

    /** Its owner forgets a saved ID, and the next message saves it: the fence is the same. */
    @Test
    void deletesNoIdThatIsSavedAnewWhileAPersonThought() {
        IdempotenceId id = newId();
        StorageKey key = admin.savedKey(id);
        tool.claim(key, RETENTION);
        person.answers = question -> {
            storage.delete(key);
            tool.claim(key, RETENTION);
            return true;
        };

        assertThat(tool.run("delete", id.value(), "--kind", "saved")).isEqualTo(1);

        assertThat(tool.state(key)).isEqualTo(State.IN_PROGRESS);
    }

    @Test
    void keyOfAnotherNamespaceIsAMistake() {
        StorageKey key = tool.abandon().key();

        assertThat(tool.runAnywhere("delete", "--key", key.value(), "--namespace", "other", "--yes"))
                .isEqualTo(2);
        assertThat(tool.state(key)).isEqualTo(State.ABANDONED);
    }
}
