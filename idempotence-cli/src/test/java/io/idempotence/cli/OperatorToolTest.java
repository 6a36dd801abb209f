package io.idempotence.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.idempotence.ClosedPort;
import io.idempotence.IdempotenceId;
import io.idempotence.server.redis.EmbeddedRedis;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The options of the tool, its passwords and its exit codes. */
class OperatorToolTest {
    @RegisterExtension
    private final ToolOnRedis tool = new ToolOnRedis();

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "list --older-than 5",
                "list --older-than PT-5M",
                "resolve a --applied --retention 0s --yes",
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
                "list --redis host:1 --in-transaction",
                "list --redis host:1 --jdbc-table mine",
                "list --jdbc jdbc:mariadb://host/db --sentinel primary",
            })
    void reportsWhichOptionIsWrong(String arguments) {
        String[] args = arguments.isEmpty() ? new String[0] : arguments.split(" ");
        assertThat(tool.runAnywhere(args)).isEqualTo(2);
        assertThat(tool.errors()).contains("--help'").doesNotContain("Exception");
        assertThat(tool.output()).isEmpty();
    }

    @Test
    void storageThatDoesNotRespondIsThree() throws IOException {
        tool.environment.put("IDEMPOTENCE_CLI_REDIS", ClosedPort.address());
        assertThat(tool.run("stats")).isEqualTo(3);
        assertThat(tool.errors()).contains("cannot be used");
    }

    @Test
    void wrongPasswordIsThreeAndStaysSecret() {
        tool.environment.put("IDEMPOTENCE_CLI_REDIS_PASSWORD", "wrong-sesame");

        assertThat(tool.run("stats")).isEqualTo(3);
        assertThat(tool.errors()).contains("denies the user or the password");
    }

    @Test
    void reportsWhatIsWrongWithTheDatabaseOrTheSentinel() {
        assertThat(tool.run("stats", "--redis", "redis://" + tool.address + "/99"))
                .isEqualTo(3);
        assertThat(tool.errors()).contains(tool.address + " has no database 99");
        try (EmbeddedRedis withoutPassword = EmbeddedRedis.start()) {
            String address = withoutPassword.address();
            assertThat(tool.run("stats", "--redis", address, "--sentinel", "orders"))
                    .isEqualTo(3);
            assertThat(tool.errors()).contains(address + " is no Sentinel");
        }
    }

    /** A failed write of an output that does not block, or whose connection broke, was taken for a reader that wants no more. */
    @ParameterizedTest
    @ValueSource(strings = {"Resource temporarily unavailable", "Connection reset by peer", ""})
    void outputThatIsLostAndThatItsReaderStillWantsIsThree(String why) {
        assertThat(tool.run(ToolOnRedis.failing(why.isEmpty() ? null : why), "stats"))
                .isEqualTo(3);
        assertThat(tool.errors()).contains("the output is not complete").contains(why);
    }

    @Test
    void pipeThatItsReaderClosedIsNoFailure(@TempDir Path folder) throws Exception {
        Path pipe = folder.resolve("pipe");
        assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor())
                .isZero();
        RandomAccessFile reader = new RandomAccessFile(pipe.toFile(), "rw");
        try (FileOutputStream writer = new FileOutputStream(pipe.toFile())) {
            reader.close();
            assertThat(tool.run(writer, "stats")).isZero();
        }
        assertThat(tool.errors()).isEmpty();
    }

    @Test
    void firstFailureOfTheOutputCounts() {
        WatchedStream watched = new WatchedStream(new OutputStream() {
            private final Iterator<OutputStream> outputs =
                    List.of(ToolOnRedis.FULL_DISK, ToolOnRedis.CLOSED_PIPE).iterator();

            @Override
            public void write(int b) throws IOException {
                outputs.next().write(b);
            }
        });
        assertThatIOException().isThrownBy(() -> watched.write(1));
        assertThatIOException().isThrownBy(() -> watched.write(1));
        assertThat(watched.failure()).isEqualTo("No space left on device");
    }

    @Test
    void takesThePasswordFromTheUriOrTheVariable() {
        assertThat(tool.run("stats", "--redis", "redis://" + tool.address)).isZero();

        tool.environment.remove("IDEMPOTENCE_CLI_REDIS_PASSWORD");
        assertThat(tool.run("stats", "--redis", "redis://:open%2Fsesame%4042@" + tool.address))
                .isZero();
        assertThat(tool.run("stats", "--redis", tool.address)).isEqualTo(3);
    }

    @Test
    void actsAsTheUserOfTheUriOrOfTheOption() {
        tool.addUser("clerk", "clerks-sesame");
        String address = tool.address;
        tool.environment.put("IDEMPOTENCE_CLI_REDIS_PASSWORD", "clerks-sesame");
        assertThat(tool.run("stats", "--redis-user", "clerk")).isZero();
        assertThat(tool.run("stats", "--redis-user", "clerk", "--redis", "redis://" + address))
                .isZero();
        assertThat(tool.run("stats", "--redis-user", "nobody", "--redis", "redis://clerk@" + address))
                .isZero();

        tool.environment.remove("IDEMPOTENCE_CLI_REDIS_PASSWORD");
        assertThat(tool.run("stats", "--redis", "redis://clerk:clerks-sesame@" + address))
                .isZero();
        assertThat(tool.run("stats", "--redis-user", "clerk", "--redis", "redis://:clerks-sesame@" + address))
                .isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "redis://"})
    void aUserWithoutAPasswordIsAUsageError(String scheme) {
        tool.environment.remove("IDEMPOTENCE_CLI_REDIS_PASSWORD");
        assertThat(tool.run("stats", "--redis-user", "clerk", "--redis", scheme + tool.address))
                .isEqualTo(2);
        assertThat(tool.errors()).contains("IDEMPOTENCE_CLI_REDIS_PASSWORD");
    }

    @Test
    void misspelledVariableOfTheToolIsAUsageErrorAndThoseOfOthersAreIgnored() {
        tool.environment.put("IDEMPOTENCE_CLIENT_DEADLINE", "3s");
        tool.environment.put("IDEMPOTENCE_REDIS", "elsewhere:1");
        assertThat(tool.run("stats")).isZero();

        tool.environment.put("IDEMPOTENCE_CLI_REDIS_PASSWROD", "open-sesame");
        assertThat(tool.run("stats")).isEqualTo(2);
        assertThat(tool.errors())
                .contains("IDEMPOTENCE_CLI_REDIS_PASSWROD", "IDEMPOTENCE_CLI_REDIS_PASSWORD")
                .doesNotContain("open-sesame");
    }

    /** "@@order-7" found the record of "@order-7", and "@" and the name of a file were replaced by what the file contains. */
    @Test
    void takesAnIdWithAnAtSignAsItIs(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("arguments"), "order-7");
        for (String id : List.of("order-7", "@order-7")) {
            tool.claim(tool.admin.requestKey(new IdempotenceId(id), ""), ToolOnRedis.RETENTION);
        }

        assertThat(tool.run("find", "@@order-7")).isEqualTo(1);
        assertThat(tool.run("find", "@" + file)).isEqualTo(1);
        assertThat(tool.run("find", "@order-7")).isZero();
    }

    /** In the POSIX locale each byte arrives as a replacement character, and the record of "jürgen" seemed not to exist. */
    @Test
    void argumentThatTheLocaleCannotRepresentIsAUsageError() {
        assertThat(tool.run("find", "order-7", "--principal", "j\ufffd\ufffdrgen"))
                .isEqualTo(2);
        assertThat(tool.errors()).contains("LC_ALL=C.UTF-8");
    }

    @Test
    void helpListsTheExitCodes() {
        assertThat(tool.runAnywhere("--help")).isZero();
        assertThat(tool.output()).contains("Exit codes:").contains("resolve");
        for (String command : List.of("find", "list", "resolve", "delete", "stats")) {
            assertThat(tool.runAnywhere(command, "--help")).isZero();
            assertThat(tool.output()).contains("--namespace");
        }
    }
}
