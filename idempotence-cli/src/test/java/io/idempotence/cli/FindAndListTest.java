package io.idempotence.cli;

import static io.idempotence.cli.ToolOnRedis.RETENTION;
import static io.idempotence.cli.ToolOnRedis.await;
import static io.idempotence.cli.ToolOnRedis.newId;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.StorageKey;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands that show records: find, list and stats. */
class FindAndListTest {
    @RegisterExtension
    private final ToolOnRedis tool = new ToolOnRedis();

    private final RedisIdempotenceStorage storage = tool.storage;
    private final IdempotenceAdmin admin = tool.admin;

    @Test
    void findsWhatAnIdWasUsedFor() throws Exception {
        try (Idempotence idempotence = Idempotence.builder(storage)
                .namespace(tool.namespace)
                .policy(IdempotencePolicy.defaults())
                .build()) {
            idempotence.execute(new IdempotenceId("order-7"), () -> "paid");
            idempotence.saveIfAbsent("order-7");
            tool.claim(admin.requestKey(new IdempotenceId("order-7"), "principal:alice"), RETENTION);

            assertThat(tool.run("find", "order-7")).isZero();
            assertThat(tool.output().lines())
                    .hasSize(3)
                    .anyMatch(line -> line.matches("idem:\\S+  execute  completed .*"))
                    .anyMatch(line -> line.matches("idem:\\S+  saved    in-progress .*"));
            assertThat(tool.run("find", "order-7", "--principal", "alice")).isZero();
            assertThat(tool.output().lines())
                    .hasSize(2)
                    .anyMatch(line -> line.matches("idem:\\S+  request  in-progress .*"));
            assertThat(tool.run("find", "order-7", "--scope", "principal:alice", "--kind", "request"))
                    .isZero();
            assertThat(tool.run("find", "order-7", "--kind", "request")).isEqualTo(1);
            assertThat(tool.errors()).contains("--principal");
        }
    }

    @Test
    void takesConnectionOptionsBeforeAndAfterTheCommand() {
        tool.claim(admin.requestKey(new IdempotenceId("order-7"), ""), RETENTION);
        tool.environment.remove("IDEMPOTENCE_CLI_REDIS");

        assertThat(tool.runAnywhere(
                        "--redis", tool.address, "--namespace", tool.namespace, "--json", "find", "order-7"))
                .isZero();
        String before = tool.output();
        assertThat(tool.runAnywhere(
                        "find", "order-7", "--json", "--namespace", tool.namespace, "--redis", tool.address))
                .isZero();
        assertThat(tool.output()).isNotEmpty().hasSameSizeAs(before);
    }

    @Test
    void findsTheExecutionOfAnOperation() throws Exception {
        IdempotentCall call =
                IdempotentCall.of("charge", new IdempotenceId("order-7")).withScope("acme");
        tool.claim(admin.executeKey(call), RETENTION);

        assertThat(tool.run("find", "order-7", "--operation", "charge", "--scope", "acme"))
                .isZero();
        assertThat(tool.output()).contains("execute  in-progress");
        assertThat(tool.run("find", "order-7", "--scope", "acme")).isEqualTo(1);
        assertThat(tool.errors()).contains("--operation");
        assertThat(tool.run("delete", "order-7", "--operation", "charge", "--scope", "acme", "--force", "--yes"))
                .isZero();
        assertThat(admin.find(admin.executeKey(call))).isEmpty();
    }

    @Test
    void findsByTheKeyThatAListShows() {
        StorageKey key = tool.abandon().key();

        // The key names its namespace.
        assertThat(tool.runAnywhere("find", "--key", key.value())).isZero();
        assertThat(tool.output()).contains(key.value()).contains("abandoned");
    }

    @Test
    void listsWhatHasBeenAbandonedForLonger() {
        StorageKey key = tool.abandon().key();
        tool.claim(admin.executeKey(newId()), RETENTION);

        assertThat(tool.run("list", "--abandoned", "--older-than", "5m")).isZero();
        assertThat(tool.output()).isEmpty();
        assertThat(tool.errors()).contains("no such records");

        await(() -> tool.run("list", "--abandoned", "--older-than", "100ms") == 0
                && tool.output().contains(key.value()));
        assertThat(tool.output().lines())
                .hasSize(2)
                .first()
                .asString()
                .containsSubsequence("KEY", "STATE", "FENCE", "UNCERTAIN FOR", "RETENTION LEFT");
    }

    @Test
    void listsStates() {
        StorageKey abandoned = tool.abandon().key();
        Claim unknown = tool.claim(admin.executeKey(newId()), RETENTION);
        storage.markUnknown(unknown, RETENTION);
        StorageKey running = tool.claim(admin.executeKey(newId()), RETENTION).key();

        assertThat(tool.keys("list"))
                .containsExactlyInAnyOrder(abandoned.value(), unknown.key().value());
        assertThat(tool.keys("list", "--unknown")).containsExactly(unknown.key().value());
        assertThat(tool.keys("list", "--state", "in-progress")).containsExactly(running.value());
        assertThat(tool.keys("list", "--state", "all")).hasSize(3);
        assertThat(tool.keys("list", "--state", "completed,released")).isEmpty();
    }

    @Test
    void jsonOfAListIsOneArray() throws IOException {
        tool.abandon();
        StorageKey running = tool.claim(admin.executeKey(newId()), RETENTION).key();
        tool.abandon();

        assertThat(tool.run("list", "--state", "all", "--json")).isZero();

        JsonNode list = tool.json();
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
        assertThat(tool.run("list", "--unknown", "--json")).isZero();
        assertThat(tool.json()).isEmpty();
    }

    @Test
    void countsRecords() throws IOException {
        StorageKey abandoned = tool.abandon().key();
        tool.claim(admin.executeKey(newId()), RETENTION);

        assertThat(tool.run("stats", "--json")).isZero();
        assertThat(tool.json().get("records").get("abandoned").asLong()).isOne();
        assertThat(tool.json().get("records").get("in-progress").asLong()).isOne();
        assertThat(tool.json().get("records").get("completed").asLong()).isZero();
        assertThat(tool.json().get("oldestUncertain").get("key").asText()).isEqualTo(abandoned.value());

        assertThat(tool.run("stats")).isZero();
        assertThat(tool.output()).containsPattern("abandoned +1\n").contains(abandoned.value());
    }

    @Test
    void endsQuietlyWhenNobodyReadsAnyMore() {
        for (int i = 0; i < 2_000; i++) {
            tool.claim(admin.executeKey(newId()), RETENTION);
        }
        int[] written = new int[1];
        OutputStream head = new OutputStream() {
            @Override
            public void write(int b) throws IOException {
                if (++written[0] > 500) {
                    ToolOnRedis.CLOSED_PIPE.write(b);
                }
            }
        };

        assertThat(tool.run(head, "list", "--state", "all")).isZero();

        assertThat(tool.errors()).isEmpty();
        assertThat(written[0]).isLessThan(2_000);
    }

    /** The list ended after the records that fitted, with 0, as if there were no more. */
    @ParameterizedTest
    @ValueSource(strings = {"list", "stats", "list --json", "stats --json"})
    void reportsThatItsOutputDoesNotFitOnTheDisk(String command) {
        tool.abandon();

        assertThat(tool.run(ToolOnRedis.FULL_DISK, command.split(" "))).isEqualTo(3);

        assertThat(tool.errors()).contains("the output is not complete", "No space left on device");
    }

    @Test
    void reportsByItsExitCodeThatThereIsNoRecordThoughNobodyReads() {
        assertThat(tool.run(ToolOnRedis.CLOSED_PIPE, "find", "never-seen", "--json"))
                .isEqualTo(1);
        assertThat(tool.errors()).contains("no record");
    }

    @Test
    void reportsTheProgressOfALongWalk() {
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        Progress progress = new Progress(new PrintStream(told, true, StandardCharsets.UTF_8), Duration.ZERO);
        for (int i = 0; i < 1_200; i++) {
            progress.step();
        }

        assertThat(told.toString(StandardCharsets.UTF_8).lines())
                .containsExactly("... 500 records read so far", "... 1000 records read so far");
    }
}
