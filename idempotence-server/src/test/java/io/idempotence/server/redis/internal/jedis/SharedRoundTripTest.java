package io.idempotence.server.redis.internal.jedis;

import static io.idempotence.server.redis.internal.jedis.QueuedCalls.find;
import static io.idempotence.server.redis.internal.jedis.QueuedCalls.told;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.redis.internal.Redis.ScriptRun;
import io.idempotence.server.redis.internal.Redis.TooFewReplicasException;
import io.idempotence.server.redis.internal.jedis.QueuedCalls.Call;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisAskDataException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisMovedDataException;

/** Tests of what a server's replies to a batch mean for each of its callers. */
@Tag("jedis")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SharedRoundTripTest {
    private static final List<String> BATCH = List.of("sender", "second", "third");
    private static final RedisCall ASKING = RedisCall.of(Protocol.Command.ASKING);

    private QueuedCalls calls = new QueuedCalls(1);

    @AfterEach
    void close() throws Exception {
        calls.close();
    }

    /** The batch, through the combiner itself. */
    private List<Call<List<Object>>> sentTogether() {
        calls.holdUpCombiner();
        List<Call<List<Object>>> batch =
                BATCH.stream().map(key -> calls.queued(find(key))).toList();
        calls.sendQueued();
        return batch;
    }

    private void assertNothingIsLeft() {
        assertThat(told(calls.combiner().ask(List.of(find("later"))).get(0))).isEqualTo("later");
    }

    // ---- replicas

    private void waitForReplicas() throws Exception {
        calls.close();
        calls = new QueuedCalls(1, new ReplicaWait(1, Duration.ofSeconds(1)), QueuedCalls.Threads.PLATFORM);
    }

    private Call<Object> queuedWrite(String key) {
        return calls.queued(() -> calls.redis().runReplicated(QueuedCalls.SCRIPT, RedisCall.bytes(key)));
    }

    private List<Call<Object>> writtenTogether(String... waits) throws Exception {
        waitForReplicas();
        calls.willReply("WAIT", waits);
        Call<Object> first =
                calls.holdUp(() -> calls.redis().runReplicated(QueuedCalls.SCRIPT, RedisCall.bytes("first")));
        List<Call<Object>> batch = BATCH.stream().map(this::queuedWrite).toList();
        calls.sendQueued();
        assertThat(told(first.get())).isEqualTo("first");
        return batch;
    }

    @Test
    void aBatchWaitsForReplicasOnce() throws Exception {
        List<Call<Object>> batch = writtenTogether();
        for (int i = 0; i < BATCH.size(); i++) {
            assertThat(told(batch.get(i).get())).isEqualTo(BATCH.get(i));
        }
        assertThat(calls.receivedAfterFirst())
                .containsExactly("WAIT", "EVALSHA sender", "EVALSHA second", "EVALSHA third", "WAIT");
    }

    @ParameterizedTest
    @CsvSource({
        ":0, 0 of 1 replicas have the write",
        "-NOPERM no, the number of replicas that have the write is unknown"
    })
    void everyWriteOfABatchThatTooFewReplicasHaveIsReportedWithItsOwnReply(String wait, String why) throws Exception {
        List<Call<Object>> batch = writtenTogether(":1\r\n", wait + "\r\n");
        for (int i = 0; i < BATCH.size(); i++) {
            String key = BATCH.get(i);
            assertThat(batch.get(i).failure())
                    .hasMessageStartingWith(why)
                    .isInstanceOfSatisfying(
                            TooFewReplicasException.class,
                            e -> assertThat(told(e.reply())).isEqualTo(key));
        }
        // The batch after it has a verdict of its own.
        assertThat(told(calls.redis().runReplicated(QueuedCalls.SCRIPT, RedisCall.bytes("later"))))
                .isEqualTo("later");
    }

    @Test
    void aCallThatRedisRefusedIsNotReportedAsAWriteThatReplicasLack() throws Exception {
        waitForReplicas();
        calls.willReply("second", "-OOM second\r\n");
        calls.willReply("WAIT", ":1\r\n", ":0\r\n");
        calls.holdUp(() -> calls.redis().runReplicated(QueuedCalls.SCRIPT, RedisCall.bytes("first")));
        Call<Object> sender = queuedWrite("sender");
        Call<Object> second = queuedWrite("second");
        calls.sendQueued();
        assertThat(second.failure()).isInstanceOf(NothingWrittenException.class).hasMessageEndingWith("OOM second");
        assertThat(sender.failure()).isInstanceOf(TooFewReplicasException.class);
    }

    // ---- errors of one call

    static Stream<List<String>> errorsAndCallers() {
        return Stream.of(
                        "NOSCRIPT No matching script",
                        "READONLY You can't write against a read only replica",
                        "LOADING Redis is loading the dataset in memory",
                        "OOM command not allowed when used memory > 'maxmemory'")
                .flatMap(error -> BATCH.stream().map(key -> List.of(error, key)));
    }

    @ParameterizedTest
    @MethodSource("errorsAndCallers")
    void anErrorConcernsOnlyTheCallThatItRepliesTo(List<String> errorAndCaller) throws Exception {
        String error = errorAndCaller.get(0);
        String refused = errorAndCaller.get(1);
        calls.willReply(refused, "-" + error + "\r\n");
        calls.holdUp();
        List<Call<String>> batch = BATCH.stream().map(calls::queued).toList();
        calls.sendQueued();
        for (int i = 0; i < BATCH.size(); i++) {
            String key = BATCH.get(i);
            if (key.equals(refused) && error.startsWith("OOM")) {
                assertThat(batch.get(i).failure())
                        .isInstanceOf(NothingWrittenException.class)
                        .hasMessageEndingWith(error);
            } else {
                assertThat(batch.get(i).get()).isEqualTo(key);
            }
        }
        List<String> expected =
                new ArrayList<>(BATCH.stream().map("EVALSHA "::concat).toList());
        if (error.startsWith("NOSCRIPT")) {
            expected.add("EVAL " + refused);
        } else if (!error.startsWith("OOM")) {
            // Another server may be at the address by now.
            expected.add("EVALSHA " + refused);
        }
        assertThat(calls.receivedAfterFirst()).isEqualTo(expected);
    }

    // ---- redirections

    @Test
    void askingIsSentDirectlyBeforeItsOwnCallHoweverManyShareTheBatch() throws Exception {
        calls.holdUpCombiner();
        Call<List<Object>> sender = calls.queued(ASKING, find("sender"));
        Call<List<Object>> second = calls.queued(find("second"));
        Call<List<Object>> third = calls.queued(ASKING, find("third"));
        Call<List<Object>> fourth = calls.queued(find("fourth"));
        calls.sendQueued();
        assertThat(told(sender.get().get(1))).isEqualTo("sender");
        assertThat(told(second.get().get(0))).isEqualTo("second");
        assertThat(told(third.get().get(1))).isEqualTo("third");
        assertThat(told(fourth.get().get(0))).isEqualTo("fourth");
        assertThat(calls.receivedAfterFirst())
                .containsExactly(
                        "ASKING", "EVALSHA sender", "EVALSHA second", "ASKING", "EVALSHA third", "EVALSHA fourth");
    }

    @Test
    void aRedirectionConcernsOnlyTheCallThatItRepliesTo() throws Exception {
        calls.willReply("sender", "-MOVED 1 127.0.0.1:1\r\n");
        calls.willReply("third", "-ASK 2 127.0.0.1:2\r\n");
        List<Call<List<Object>>> batch = sentTogether();
        assertThat(batch.get(0).get()).singleElement().isInstanceOf(JedisMovedDataException.class);
        assertThat(told(batch.get(1).get().get(0))).isEqualTo("second");
        assertThat(batch.get(2).get()).singleElement().isInstanceOf(JedisAskDataException.class);
        assertThat(calls.server.connections()).isEqualTo(1);
        assertNothingIsLeft();
    }

    // ---- replies that cannot be

    /** It may have been executed, its connection is closed, and the next call is sent on another one. */
    private void assertInDoubt(List<Call<List<Object>>> batch) throws Exception {
        for (Call<List<Object>> call : batch) {
            assertThat(call.failure()).isInstanceOf(JedisConnectionException.class);
        }
        QueuedCalls.until(() -> !calls.server.open().contains(1));
        assertNothingIsLeft();
        assertThat(calls.server.connections()).isEqualTo(2);
    }

    static Stream<List<String>> impossibleReplies() {
        return Stream.of(":1", "$-1", "*-1", "*0", "*2\r\n:1\r\n:-2", "*1\r\n$-1")
                .flatMap(reply -> BATCH.stream().map(key -> List.of(reply, key)));
    }

    @ParameterizedTest
    @MethodSource("impossibleReplies")
    void aReplyThatACallCannotHaveLeavesItsWholeBatchInDoubtAndClosesTheConnection(List<String> replyAndCaller)
            throws Exception {
        calls.willReply(replyAndCaller.get(1), replyAndCaller.get(0) + "\r\n");
        assertInDoubt(sentTogether());
    }

    @Test
    void aReplyThatWaitCannotHaveIsNoVerdict() throws Exception {
        List<Call<Object>> batch = writtenTogether(":1\r\n", "+OK\r\n");
        assertThat(batch.get(0).failure()).isInstanceOf(JedisConnectionException.class);
        // They are repeated, with a verdict of their own.
        assertThat(told(batch.get(1).get())).isEqualTo("second");
        assertThat(told(batch.get(2).get())).isEqualTo("third");
    }

    @ParameterizedTest
    @ValueSource(strings = {":1", "*0", "$-1"})
    void aReplyThatAskingCannotHaveLeavesItsBatchInDoubt(String reply) throws Exception {
        calls.willReply("ASKING", reply + "\r\n");
        calls.holdUpCombiner();
        List<Call<List<Object>>> batch = List.of(calls.queued(find("sender")), calls.queued(ASKING, find("second")));
        calls.sendQueued();
        assertInDoubt(batch);
    }

    /** One broken connection must not fail what it can do without. */
    @Test
    void onlyTheSenderOfABatchInDoubtHasToAskAgain() throws Exception {
        calls.willReply("second", ":1\r\n");
        calls.holdUp();
        List<Call<String>> batch = BATCH.stream().map(calls::queued).toList();
        calls.sendQueued();
        assertThat(batch.get(0).failure()).isInstanceOf(JedisConnectionException.class);
        assertThat(batch.get(1).get()).isEqualTo("second");
        assertThat(batch.get(2).get()).isEqualTo("third");
    }

    /** As completions that follow their responses are sent. */
    @Test
    void aListOfRunsIsSentOnceMoreIfTheConnectionOfItsSenderBreaks() throws Exception {
        List<ScriptRun> runs = Stream.of("second", "third")
                .map(RedisCall::bytes)
                .map(ScriptRun::new)
                .toList();
        calls.willReply("sender", QueuedCalls.CLOSED);
        calls.holdUp();
        Call<String> sender = calls.queued("sender");
        Call<List<Object>> list = calls.queued(() -> calls.redis().runAllReplicated(QueuedCalls.SCRIPT, runs));
        calls.sendQueued();
        assertThat(sender.failure()).isInstanceOf(JedisConnectionException.class);
        assertThat(list.get()).extracting(QueuedCalls::told).containsExactly("second", "third");
    }

    // ---- one reply too many

    static List<String> batch() {
        return BATCH;
    }

    @ParameterizedTest
    @MethodSource("batch")
    void aReplyTooManyGivesNobodyTheReplyToAnotherCallOfItsBatch(String twice) throws Exception {
        calls.willReply(twice, QueuedCalls.USUAL + QueuedCalls.USUAL);
        assertInDoubt(sentTogether());
    }

    @ParameterizedTest
    @ValueSource(strings = {"+OK\r\n", ":1\r\n", "$-1\r\n", "-ERR a reply to nothing\r\n", "-MOVED 1 127.0.0.1:1\r\n"})
    void aReplyToNothingIsNotTakenForOneOfTheBatch(String nothing) throws Exception {
        calls.willReply("third", QueuedCalls.USUAL + nothing);
        assertInDoubt(sentTogether());
    }

    /** Who lists records sends without the combiner. */
    @Test
    void aReplyTooManyGivesNoListedRecordTheReplyToAnother() {
        calls.willReply("second", QueuedCalls.USUAL + QueuedCalls.USUAL);
        try (Connection connection = new Connection(calls.server.address())) {
            List<RedisCall> page = List.of(find("first"), find("second"), find("third"));
            assertThat(catchThrowable(() -> RoundTripSender.ask(connection, page)))
                    .isInstanceOf(JedisConnectionException.class);
            assertThat(connection.isBroken()).isTrue();
        }
    }

    /** The server sends it when every reply of the batch before it was read. */
    @ParameterizedTest
    @ValueSource(strings = {"*2\r\n$5\r\nfirst\r\n:-2\r\n", "-OOM a reply to nothing\r\n"})
    void aReplyThatIsLeftOverIsNotReadByTheNextUserOfTheConnection(String late) throws Exception {
        assertThat(told(calls.combiner().ask(List.of(find("late"))).get(0))).isEqualTo("late");
        calls.server.sendUnasked(late);

        assertThat(catchThrowable(() -> calls.combiner().ask(List.of(find("next")))))
                .isInstanceOf(JedisConnectionException.class);
        QueuedCalls.until(() -> !calls.server.open().contains(1));
        assertNothingIsLeft();
    }

    /** As a proxy may that sends the replies to a batch twice. */
    @Test
    void theRepliesToABatchAreNotTakenForThoseToTheNextOne() {
        calls.willReply("ECHO", QueuedCalls.USUAL + QueuedCalls.found("late") + QueuedCalls.USUAL);
        assertThat(told(calls.combiner().ask(List.of(find("late"))).get(0))).isEqualTo("late");
        assertThat(catchThrowable(() -> calls.combiner().ask(List.of(find("next")))))
                .isInstanceOf(JedisConnectionException.class);
        assertNothingIsLeft();
    }

    /** A server that is loading has an error for every command, and so for the one that ends a batch. */
    @Test
    void aServerThatRepliesWithErrorsOnlyIsUnderstood() throws Exception {
        BATCH.forEach(key -> calls.willReply(key, "-LOADING " + key + "\r\n"));
        calls.willReply("ECHO", QueuedCalls.USUAL, "-LOADING end\r\n");
        List<Call<List<Object>>> batch = sentTogether();
        for (int i = 0; i < BATCH.size(); i++) {
            assertThat(told(batch.get(i).get().get(0))).isEqualTo("LOADING " + BATCH.get(i));
        }
        assertNothingIsLeft();
    }

    @Test
    void aBatchWhoseEndIsRefusedIsInDoubt() throws Exception {
        calls.willReply(
                "ECHO", QueuedCalls.USUAL, "-NOPERM this user has no permissions to run the 'echo' command\r\n");
        assertInDoubt(sentTogether());
    }
}
