package io.idempotence.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.idempotence.ClosedPort;
import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands, on a real Redis that wants a password. */
class OperatorToolTest {
    private static final String PASSWORD = "open/sesame@42";
    private static final Duration LEASE = Duration.ofMillis(20);
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final SecureRandom RANDOM = new SecureRandom();

    private static RedisForATest redis;
    private static String address;

    private final String namespace = "n" + UUID.randomUUID();
    private final Map<String, String> environment = new HashMap<>();
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();
    private final Person person = new Person();

    private RedisIdempotenceStorage storage;
    private IdempotenceAdmin admin;

    @BeforeAll
    static void startRedis() throws IOException {
        redis = RedisForATest.start("requirepass " + PASSWORD);
        address = redis.address();
    }

    @AfterAll
    static void stopRedis() throws IOException {
        redis.close();
    }

    @BeforeEach
    void open() {
        environment.put("IDEMPOTENCE_CLI_REDIS", address);
        environment.put("IDEMPOTENCE_CLI_REDIS_PASSWORD", PASSWORD);
        storage = RedisIdempotenceStorage.connect(URI.create("redis://:open%2Fsesame%4042@" + address));
        admin = IdempotenceAdmin.of(storage, namespace);
    }

    @AfterEach
    void close() {
        storage.close();
        assertThat(output() + errors()).doesNotContain("sesame");
    }

    // ---- find

    @Test
    void findsWhatAnIdWasUsedFor() throws Exception {
        try (Idempotence idempotence = Idempotence.builder(storage)
                .namespace(namespace)
                .policy(IdempotencePolicy.defaults())
                .build()) {
            idempotence.execute(new IdempotenceId("order-7"), () -> "paid");
            idempotence.saveIfAbsent("order-7");
            claim(admin.requestKey(new IdempotenceId("order-7"), "principal:alice"), RETENTION);

            assertThat(run("find", "order-7")).isZero();
            assertThat(output().lines())
                    .hasSize(3)
                    .anyMatch(line -> line.matches("idem:\\S+  execute  completed .*"))
                    .anyMatch(line -> line.matches("idem:\\S+  saved    in-progress .*"));
            assertThat(run("find", "order-7", "--principal", "alice")).isZero();
            assertThat(output().lines())
                    .hasSize(2)
                    .anyMatch(line -> line.matches("idem:\\S+  request  in-progress .*"));
            assertThat(run("find", "order-7", "--scope", "principal:alice", "--kind", "request"))
                    .isZero();
            assertThat(run("find", "order-7", "--kind", "request")).isEqualTo(1);
            assertThat(errors()).contains("--principal");
        }
    }

    @Test
    void takesConnectionOptionsBeforeAndAfterTheCommand() {
        claim(admin.requestKey(new IdempotenceId("order-7"), ""), RETENTION);
        environment.remove("IDEMPOTENCE_CLI_REDIS");

        assertThat(runAnywhere("--redis", address, "--namespace", namespace, "--json", "find", "order-7"))
                .isZero();
        String before = output();
        assertThat(runAnywhere("find", "order-7", "--json", "--namespace", namespace, "--redis", address))
                .isZero();
        assertThat(output()).isNotEmpty().hasSameSizeAs(before);
    }

    @Test
    void findsTheExecutionOfAnOperation() throws Exception {
        IdempotentCall call =
                IdempotentCall.of("charge", new IdempotenceId("order-7")).withScope("acme");
        claim(admin.executeKey(call), RETENTION);

        assertThat(run("find", "order-7", "--operation", "charge", "--scope", "acme"))
                .isZero();
        assertThat(output()).contains("execute  in-progress");
        assertThat(run("find", "order-7", "--scope", "acme")).isEqualTo(1);
        assertThat(errors()).contains("--operation");
        assertThat(run("delete", "order-7", "--operation", "charge", "--scope", "acme", "--force", "--yes"))
                .isZero();
        assertThat(admin.find(admin.executeKey(call))).isEmpty();
    }

    @Test
    void findsByTheKeyThatAListShows() {
        StorageKey key = abandon().key();

        // The key names its namespace.
        assertThat(runAnywhere("find", "--key", key.value())).isZero();
        assertThat(output()).contains(key.value()).contains("abandoned");
    }

    // ---- list

    @Test
    void listsWhatHasBeenAbandonedForLonger() {
        StorageKey key = abandon().key();
        claim(admin.executeKey(newId()), RETENTION);

        assertThat(run("list", "--abandoned", "--older-than", "5m")).isZero();
        assertThat(output()).isEmpty();
        assertThat(errors()).contains("no such records");

        await(() -> run("list", "--abandoned", "--older-than", "100ms") == 0 && output().contains(key.value()));
        assertThat(output().lines())
                .hasSize(2)
                .first()
                .asString()
                .containsSubsequence("KEY", "STATE", "FENCE", "UNCERTAIN FOR", "RETENTION LEFT");
    }

    @Test
    void listsStates() {
        StorageKey abandoned = abandon().key();
        Claim unknown = claim(admin.executeKey(newId()), RETENTION);
        storage.markUnknown(unknown, RETENTION);
        StorageKey running = claim(admin.executeKey(newId()), RETENTION).key();

        assertThat(keys("list"))
                .containsExactlyInAnyOrder(abandoned.value(), unknown.key().value());
        assertThat(keys("list", "--unknown")).containsExactly(unknown.key().value());
        assertThat(keys("list", "--state", "in-progress")).containsExactly(running.value());
        assertThat(keys("list", "--state", "all")).hasSize(3);
        assertThat(keys("list", "--state", "completed,released")).isEmpty();
    }

    @Test
    void jsonOfAListIsOneArray() throws IOException {
        abandon();
        StorageKey running = claim(admin.executeKey(newId()), RETENTION).key();
        abandon();

        assertThat(run("list", "--state", "all", "--json")).isZero();

        JsonNode list = json();
        assertThat(list.isArray()).isTrue();
        assertThat(list).hasSize(3);
        for (JsonNode record : list) {
            assertThat(record.get("fence").asLong()).isOne();
            assertThat(record.get("retentionLeftMillis").asLong()).isBetween(3_000_000L, 3_600_000L);
            if (record.get("key").asText().equals(running.value())) {
                assertThat(record.get("state").asText()).isEqualTo("in-progress");
                assertThat(record.get("leaseLeftMillis").asLong()).isPositive();
                assertThat(record.has("uncertainForMillis")).isFalse();
            } else {
                assertThat(record.get("state").asText()).isEqualTo("abandoned");
                assertThat(record.get("uncertainForMillis").asLong()).isNotNegative();
            }
        }
        assertThat(run("list", "--unknown", "--json")).isZero();
        assertThat(json()).isEmpty();
    }

    // ---- resolve

    @Test
    void resolvesAsApplied() throws IOException {
        Claim abandoned = abandon();

        assertThat(run(
                        "resolve",
                        "--key",
                        abandoned.key().value(),
                        "--applied",
                        "--yes",
                        "--json",
                        "--retention",
                        "2h"))
                .isZero();

        assertThat(json().get("resolved").asBoolean()).isTrue();
        assertThat(json().get("as").asText()).isEqualTo("applied");
        assertThat(json().get("record").get("state").asText()).isEqualTo("completed");
        assertThat(json().get("record").get("retentionLeftMillis").asLong()).isBetween(7_100_000L, 7_200_000L);
        assertThat(storage.claim(request(abandoned.key(), RETENTION))).isInstanceOf(ClaimResult.Completed.class);
        assertThat(person.questions).isEmpty();
    }

    @Test
    void resolvesAnIdAsNotAppliedAfterAsking() {
        IdempotenceId id = newId();
        StorageKey key = admin.requestKey(id, "");
        claim(key, LEASE);
        awaitAbandoned(key);
        person.answers = question -> question.contains("NO effect");

        assertThat(run("resolve", id.value(), "--not-applied")).isZero();

        assertThat(errors()).as("the record, shown before the question").contains(key.value());
        assertThat(output()).startsWith("resolved as not applied");
        assertThat(storage.claim(request(key, RETENTION)))
                .isInstanceOfSatisfying(
                        ClaimResult.Claimed.class,
                        claimed -> assertThat(claimed.claim().fence()).isEqualTo(2));
    }

    @Test
    void doesNothingWithoutAYes() {
        StorageKey key = abandon().key();

        assertThat(run("resolve", "--key", key.value(), "--applied")).isEqualTo(1);
        assertThat(run("delete", "--key", key.value(), "--force")).isEqualTo(1);

        assertThat(person.questions).hasSize(2);
        assertThat(errors()).contains("nothing was changed");
        assertThat(state(key)).isEqualTo(RecordState.ABANDONED);
    }

    @Test
    void refusesToChangeWhenItCannotAsk() {
        StorageKey key = abandon().key();
        person.isThere = false;

        assertThat(run("resolve", "--key", key.value(), "--applied")).isEqualTo(2);
        assertThat(errors()).contains("no terminal").contains("--yes");
        assertThat(run("delete", "--key", key.value(), "--force")).isEqualTo(2);

        assertThat(person.questions).isEmpty();
        assertThat(state(key)).isEqualTo(RecordState.ABANDONED);
    }

    @Test
    void changeDuringAPersonsDecisionWins() throws IOException {
        Claim late = abandon();
        person.answers = question -> {
            storage.complete(late, new byte[] {1, 2}, RETENTION);
            return true;
        };

        assertThat(run("resolve", "--key", late.key().value(), "--not-applied", "--json"))
                .isEqualTo(1);

        assertThat(errors()).contains("has changed");
        assertThat(json().get("resolved").asBoolean()).isFalse();
        assertThat(state(late.key())).isEqualTo(RecordState.COMPLETED);
    }

    @Test
    void whatIsAsAskedForAlreadyIsNoFailure() throws IOException {
        for (String[] options : new String[][] {{"--applied"}, {"--not-applied"}, {"--applied", "--json"}}) {
            StorageKey key = abandon().key();
            boolean applied = options[0].equals("--applied");
            person.answers = question -> {
                admin.resolve(key, applied ? Resolution.APPLIED : Resolution.NOT_APPLIED);
                return true;
            };
            List<String> args = new ArrayList<>(List.of("resolve", "--key", key.value()));
            args.addAll(List.of(options));

            assertThat(run(args.toArray(String[]::new))).isZero();

            if (options.length > 1) {
                assertThat(json().get("resolved").asBoolean()).isTrue();
            } else {
                assertThat(output()).startsWith(applied ? "already completed" : "already released");
            }
        }
    }

    @Test
    void resolvesOnlyTheUncertain() {
        StorageKey running = claim(admin.executeKey(newId()), RETENTION).key();

        assertThat(run("resolve", "--key", running.value(), "--applied", "--yes"))
                .isEqualTo(1);
        assertThat(errors()).contains("is in-progress");
        assertThat(run("resolve", "never-seen", "--applied", "--yes")).isEqualTo(1);
        assertThat(errors()).contains("no record");
        assertThat(state(running)).isEqualTo(RecordState.IN_PROGRESS);
    }

    // ---- delete, stats

    @Test
    void deletesOneRecord() throws IOException {
        StorageKey key =
                claim(admin.savedKey(new IdempotenceId("order-8")), RETENTION).key();
        person.answers = question -> true;

        assertThat(run("delete", "order-8", "--kind", "saved")).isZero();

        assertThat(admin.find(key)).isEmpty();
        assertThat(run("delete", "order-8", "--kind", "saved", "--yes", "--json"))
                .isEqualTo(1);
        assertThat(json().get("deleted").asBoolean()).isFalse();
    }

    @Test
    void deletesWhatRunsOrIsUncertainOnlyByForce() {
        StorageKey running = claim(admin.executeKey(newId()), RETENTION).key();
        StorageKey abandoned = abandon().key();

        assertThat(run("delete", "--key", running.value(), "--yes")).isEqualTo(1);
        assertThat(errors()).contains("its operation still runs").contains("--force");
        assertThat(run("delete", "--key", abandoned.value(), "--yes")).isEqualTo(1);
        assertThat(errors()).contains("use resolve").contains("--force");
        assertThat(state(running)).isEqualTo(RecordState.IN_PROGRESS);
        assertThat(state(abandoned)).isEqualTo(RecordState.ABANDONED);

        assertThat(run("delete", "--key", running.value(), "--yes", "--force")).isZero();
        assertThat(admin.find(running)).isEmpty();
    }

    @Test
    void deletesNothingThatHasChangedWhileAPersonThought() {
        Claim late = abandon();
        person.answers = question -> {
            storage.complete(late, new byte[] {1, 2}, RETENTION);
            return true;
        };

        assertThat(run("delete", "--key", late.key().value(), "--force")).isEqualTo(1);

        assertThat(errors()).contains("has changed");
        assertThat(state(late.key())).isEqualTo(RecordState.COMPLETED);
    }

    @Test
    void countsRecords() throws IOException {
        StorageKey abandoned = abandon().key();
        claim(admin.executeKey(newId()), RETENTION);

        assertThat(run("stats", "--json")).isZero();
        assertThat(json().get("records").get("abandoned").asLong()).isOne();
        assertThat(json().get("records").get("in-progress").asLong()).isOne();
        assertThat(json().get("records").get("completed").asLong()).isZero();
        assertThat(json().get("oldestUncertain").get("key").asText()).isEqualTo(abandoned.value());

        assertThat(run("stats")).isZero();
        assertThat(output()).containsPattern("abandoned +1\n").contains(abandoned.value());
    }

    // ---- options, output, passwords

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "list --older-than 5",
                "list --state completed --older-than 5m",
                "list --state nonsense",
                "find",
                "find a --key b",
                "find --key session:1",
                "find a --kind execute --principal alice",
                "find a --kind request --operation charge",
                "find a --kind saved --scope acme",
                "find a --operation charge --principal alice",
                "resolve a --yes",
                "resolve a --applied --not-applied --yes",
                "delete --key idem:other:abc --yes",
                "find a redis://user:open-sesame@host:1",
                "list --redis redis://user:open^sesame@host:1",
                "list --redis nowhere",
            })
    void saysWhichOptionIsWrong(String arguments) {
        String[] args = arguments.isEmpty() ? new String[0] : arguments.split(" ");
        assertThat(runAnywhere(args)).isEqualTo(2);
        assertThat(errors()).contains("--help'").doesNotContain("Exception");
        assertThat(output()).isEmpty();
    }

    @Test
    void keyOfAnotherNamespaceIsAMistake() {
        StorageKey key = abandon().key();

        assertThat(runAnywhere("delete", "--key", key.value(), "--namespace", "other", "--yes"))
                .isEqualTo(2);
        assertThat(state(key)).isEqualTo(RecordState.ABANDONED);
    }

    @Test
    void storageThatDoesNotRespondIsThree() throws IOException {
        environment.put("IDEMPOTENCE_CLI_REDIS", ClosedPort.address());
        assertThat(run("stats")).isEqualTo(3);
        assertThat(errors()).contains("cannot be used");
    }

    @Test
    void wrongPasswordIsThreeAndStaysSecret() {
        environment.put("IDEMPOTENCE_CLI_REDIS_PASSWORD", "wrong-sesame");

        assertThat(run("stats")).isEqualTo(3);
        assertThat(errors()).contains("denies the user or the password");
    }

    @Test
    void takesThePasswordFromTheUriOrTheVariable() {
        assertThat(run("stats", "--redis", "redis://" + address)).isZero();

        environment.remove("IDEMPOTENCE_CLI_REDIS_PASSWORD");
        assertThat(run("stats", "--redis", "redis://:open%2Fsesame%4042@" + address))
                .isZero();
        assertThat(run("stats", "--redis", address)).isEqualTo(3);
    }

    @Test
    void misspelledVariableOfTheToolIsAUsageErrorAndThoseOfOthersAreIgnored() {
        environment.put("IDEMPOTENCE_CLIENT_DEADLINE", "3s");
        environment.put("IDEMPOTENCE_REDIS", "elsewhere:1");
        assertThat(run("stats")).isZero();

        environment.put("IDEMPOTENCE_CLI_REDIS_PASSWROD", "open-sesame");
        assertThat(run("stats")).isEqualTo(2);
        assertThat(errors())
                .contains("IDEMPOTENCE_CLI_REDIS_PASSWROD", "IDEMPOTENCE_CLI_REDIS_PASSWORD")
                .doesNotContain("open-sesame");
    }

    @Test
    void endsQuietlyWhenNobodyReadsAnyMore() {
        for (int i = 0; i < 2_000; i++) {
            claim(admin.executeKey(newId()), RETENTION);
        }
        int[] written = new int[1];
        OutputStream head = new OutputStream() {
            @Override
            public void write(int b) throws IOException {
                if (++written[0] > 500) {
                    throw new IOException("Broken pipe");
                }
            }
        };

        assertThat(run(new PrintStream(head, false, StandardCharsets.UTF_8), "list", "--state", "all"))
                .isZero();

        assertThat(errors()).isEmpty();
        assertThat(written[0]).isLessThan(2_000);
    }

    @Test
    void tellsHowFarALongWalkHasCome() {
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        Progress progress = new Progress(new PrintStream(told, true, StandardCharsets.UTF_8), Duration.ZERO);
        for (int i = 0; i < 1_200; i++) {
            progress.step();
        }

        assertThat(told.toString(StandardCharsets.UTF_8).lines())
                .containsExactly("... 500 records walked", "... 1000 records walked");
    }

    @Test
    void helpNamesTheExitCodes() {
        assertThat(runAnywhere("--help")).isZero();
        assertThat(output()).contains("Exit codes:").contains("resolve");
        for (String command : List.of("find", "list", "resolve", "delete", "stats")) {
            assertThat(runAnywhere(command, "--help")).isZero();
            assertThat(output()).contains("--namespace");
        }
    }

    // ---- tools of the tests

    private int run(String... args) {
        List<String> all = new ArrayList<>(List.of(args));
        if (!all.contains("--key")) {
            all.addAll(List.of("--namespace", namespace));
        }
        return runAnywhere(all.toArray(String[]::new));
    }

    private int runAnywhere(String... args) {
        out.reset();
        return execute(new PrintStream(out, false, StandardCharsets.UTF_8), args);
    }

    private int run(PrintStream stream, String... args) {
        List<String> all = new ArrayList<>(List.of(args));
        all.addAll(List.of("--namespace", namespace));
        return execute(stream, all.toArray(String[]::new));
    }

    private int execute(PrintStream stream, String... args) {
        err.reset();
        int code =
                OperatorTool.run(stream, new PrintStream(err, true, StandardCharsets.UTF_8), person, environment, args);
        stream.flush();
        return code;
    }

    private String output() {
        return out.toString(StandardCharsets.UTF_8);
    }

    private String errors() {
        return err.toString(StandardCharsets.UTF_8);
    }

    private JsonNode json() throws IOException {
        return new ObjectMapper().readTree(out.toByteArray());
    }

    private List<String> keys(String... args) {
        assertThat(run(args)).isZero();
        return output().lines().skip(1).map(line -> line.split(" ")[0]).toList();
    }

    private Claim abandon() {
        Claim claim = claim(admin.executeKey(newId()), LEASE);
        awaitAbandoned(claim.key());
        return claim;
    }

    private void awaitAbandoned(StorageKey key) {
        await(() -> state(key) == RecordState.ABANDONED);
    }

    private RecordState state(StorageKey key) {
        return admin.find(key).orElseThrow().state();
    }

    private Claim claim(StorageKey key, Duration lease) {
        return ((ClaimResult.Claimed) storage.claim(request(key, lease))).claim();
    }

    private static ClaimRequest request(StorageKey key, Duration lease) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), lease, RETENTION, false);
    }

    private static IdempotenceId newId() {
        return new IdempotenceId(UUID.randomUUID().toString());
    }

    /** Polls Redis, whose clock decides; a round trip is pause enough. */
    private static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited too long").isLessThan(end);
        }
    }

    private static final class Person implements Terminal {
        private final List<String> questions = new ArrayList<>();
        private boolean isThere = true;
        private Predicate<String> answers = question -> false;

        @Override
        public boolean isThere() {
            return isThere;
        }

        @Override
        public boolean agrees(String question) {
            questions.add(question);
            return answers.test(question);
        }
    }
}
