package io.idempotence.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.channels.Channels;
import java.nio.channels.Pipe;
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
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import picocli.CommandLine;
import redis.clients.jedis.Jedis;

/**
 * A fixture for the commands of the tool: a real Redis with a password, the records of a namespace, and a person who answers questions.
 * Each test has its own.
 */
final class ToolOnRedis implements AfterEachCallback {
    static final Duration LEASE = Duration.ofMillis(20);
    static final Duration RETENTION = Duration.ofHours(1);

    static final OutputStream FULL_DISK = failing("No space left on device");
    static final OutputStream CLOSED_PIPE = closedPipe();

    private static final String PASSWORD = "open/sesame@42";
    private static final SecureRandom RANDOM = new SecureRandom();
    /** One server for all tests of a JVM: each test has its own namespace. */
    private static final EmbeddedRedis REDIS = startRedis();

    final String address = REDIS.address();
    final String namespace = "n" + UUID.randomUUID();
    final Map<String, String> environment =
            new HashMap<>(Map.of("IDEMPOTENCE_CLI_REDIS", address, "IDEMPOTENCE_CLI_REDIS_PASSWORD", PASSWORD));
    final Person person = new Person();
    final RedisIdempotenceStorage storage =
            RedisIdempotenceStorage.connect(URI.create("redis://:open%2Fsesame%4042@" + address));
    final IdempotenceAdmin admin = IdempotenceAdmin.of(storage, namespace);

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    @Override
    public void afterEach(ExtensionContext context) {
        storage.close();
        assertThat(output() + errors()).doesNotContain("sesame");
    }

    static OutputStream failing(@Nullable String why) {
        return new OutputStream() {
            @Override
            public void write(int b) throws IOException {
                throw new IOException(why);
            }
        };
    }

    private static OutputStream closedPipe() {
        try {
            Pipe pipe = Pipe.open();
            pipe.source().close();
            return Channels.newOutputStream(pipe.sink());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static EmbeddedRedis startRedis() {
        EmbeddedRedis redis = EmbeddedRedis.start();
        try (Jedis jedis = redis.jedis()) {
            jedis.configSet("requirepass", PASSWORD);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(redis::close));
        return redis;
    }

    /** Makes a Redis user who may do everything with records. */
    void addUser(String name, String password) {
        try (Jedis jedis = REDIS.jedis()) {
            jedis.auth(PASSWORD);
            jedis.aclSetUser(name, "on", ">" + password, "~idem:*", "+@all");
        }
    }

    int run(String... args) {
        List<String> all = new ArrayList<>(List.of(args));
        if (!all.contains("--key")) {
            all.addAll(List.of("--namespace", namespace));
        }
        return runAnywhere(all.toArray(String[]::new));
    }

    int runAnywhere(String... args) {
        out.reset();
        return execute(out, args);
    }

    /** Deletes by the tool's own command, but through another storage than the one that its options name. */
    int deleteThrough(IdempotenceStorage through, String... args) {
        out.reset();
        err.reset();
        PrintStream standard = new PrintStream(out, true, StandardCharsets.UTF_8);
        PrintStream errors = new PrintStream(err, true, StandardCharsets.UTF_8);
        OperatorTool operator = new OperatorTool(standard, errors, person, environment);
        CommandLine line = new CommandLine(operator);
        line.parseArgs(args);
        DeleteCommand command = line.getSubcommands().get("delete").getCommand();
        return command.run(IdempotenceAdmin.of(through, namespace), operator.output());
    }

    int run(OutputStream stream, String... args) {
        List<String> all = new ArrayList<>(List.of(args));
        all.addAll(List.of("--namespace", namespace));
        return execute(stream, all.toArray(String[]::new));
    }

    private int execute(OutputStream stream, String... args) {
        err.reset();
        return OperatorTool.run(stream, new PrintStream(err, true, StandardCharsets.UTF_8), person, environment, args);
    }

    String output() {
        return out.toString(StandardCharsets.UTF_8);
    }

    String errors() {
        return err.toString(StandardCharsets.UTF_8);
    }

    JsonNode json() throws IOException {
        return new ObjectMapper().readTree(out.toByteArray());
    }

    List<String> keys(String... args) {
        assertThat(run(args)).isZero();
        return output().lines().skip(1).map(line -> line.split(" ")[0]).toList();
    }

    Claim abandon() {
        Claim claim = claim(admin.executeKey(newId()), LEASE);
        awaitAbandoned(claim.key());
        return claim;
    }

    /** Leaves a value that is no record. */
    void damage(StorageKey key) {
        try (Jedis jedis = REDIS.jedis()) {
            jedis.auth(PASSWORD);
            jedis.set(key.value(), "9");
        }
    }

    void awaitAbandoned(StorageKey key) {
        await(() -> state(key) == State.ABANDONED);
    }

    State state(StorageKey key) {
        return admin.find(key).orElseThrow().state();
    }

    Claim claim(StorageKey key, Duration lease) {
        return ((ClaimResult.Claimed) storage.claim(request(key, lease))).claim();
    }

    static ClaimRequest request(StorageKey key, Duration lease) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), lease, RETENTION, false);
    }

    static IdempotenceId newId() {
        return new IdempotenceId(UUID.randomUUID().toString());
    }

    /** Polls Redis, whose clock decides; a round trip is pause enough. */
    static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited too long").isLessThan(end);
        }
    }

    static final class Person implements Terminal {
        final List<String> questions = new ArrayList<>();
        boolean isThere = true;
        Predicate<String> answers = question -> false;

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
