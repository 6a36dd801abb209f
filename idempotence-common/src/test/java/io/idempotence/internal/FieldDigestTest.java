package io.idempotence.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FieldDigestTest {
    /** Longer than what is gathered before it is digested. */
    private static final byte[] LONG = new byte[1_000];

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 47, 239, 240, 241, 247, 248, 249, 255, 256, 257, 1000})
    void isTheSha256OfEachFieldBehindItsLength(int size) throws Exception {
        byte[] first = new byte[size];
        byte[] second = new byte[300];
        new Random(size).nextBytes(first);
        new Random(size + 1).nextBytes(second);

        FieldDigest digest = new FieldDigest().add(first).add("é").length(300);
        for (int at = 0; at < 300; at += 60) {
            digest.part(second, at, 60);
        }
        assertThat(digest.digest()).isEqualTo(sha256(first, new byte[] {(byte) 0xc3, (byte) 0xa9}, second));
        assertThat(digest.add(second).digest()).as("begun again").isEqualTo(sha256(second));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 240, 241, 248, 249, 255, 256, 257, 1000})
    void aTextIsDigestedAsItsUtf8(int size) throws Exception {
        for (String text :
                List.of("x".repeat(size), "x".repeat(size) + "\u007f", "x".repeat(size) + "\u0080\ud83d\ude00")) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            assertThat(new FieldDigest().add("before").add(text).add("after").digest())
                    .isEqualTo(sha256(
                            "before".getBytes(StandardCharsets.UTF_8), utf8, "after".getBytes(StandardCharsets.UTF_8)));
        }
    }

    @Test
    void anAbsentTextDiffersFromEveryPresentOne() {
        byte[] absent = new FieldDigest().addOrAbsent(null).digest();
        assertThat(absent).isNotEqualTo(new FieldDigest().addOrAbsent("").digest());
        assertThat(absent).isNotEqualTo(new FieldDigest().digest());
        assertThat(new FieldDigest().addOrAbsent("a").digest())
                .isEqualTo(new FieldDigest().add("a").digest());
    }

    @Test
    void digestsDoNotShareWhatTheyWereGiven() {
        FieldDigest one = new FieldDigest().add("one");
        byte[] two = new FieldDigest().add("two").digest();
        assertThat(new FieldDigest().add("two").digest()).isEqualTo(two);
        assertThat(Arrays.equals(one.digest(), two)).isFalse();
    }

    @Test
    void digestsMayBeNested() throws Exception {
        FieldDigest outer = new FieldDigest().add(LONG);
        FieldDigest middle = new FieldDigest().add(LONG);
        byte[] inner = new FieldDigest().add(LONG).digest();
        assertThat(inner).isEqualTo(sha256(LONG));
        assertThat(middle.add(inner).digest()).isEqualTo(sha256(LONG, inner));
        assertThat(new FieldDigest().add(LONG).digest()).isEqualTo(inner);
        assertThat(outer.add(inner).digest()).isEqualTo(sha256(LONG, inner));
    }

    @Test
    void aDigestThatWasNotCompletedChangesNoLaterOne() throws Exception {
        new FieldDigest().add("complete").digest();
        new FieldDigest().add(LONG);
        assertThat(new FieldDigest().add(LONG).digest()).isEqualTo(sha256(LONG));
    }

    /** More threads than there are digests to reuse. */
    @Test
    void threadsDoNotShareADigest() throws Exception {
        byte[] expected = sha256(LONG, LONG);
        ExecutorService threads = Executors.newFixedThreadPool(40);
        try {
            List<Callable<Boolean>> uses = Collections.nCopies(40, () -> {
                for (int i = 0; i < 500; i++) {
                    if (!Arrays.equals(new FieldDigest().add(LONG).add(LONG).digest(), expected)) {
                        return false;
                    }
                }
                return true;
            });
            for (Future<Boolean> use : threads.invokeAll(uses)) {
                assertThat(use.get()).isTrue();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private static byte[] sha256(byte[]... fields) throws Exception {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(all)) {
            for (byte[] field : fields) {
                out.writeLong(field.length);
                out.write(field);
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return MessageDigest.getInstance("SHA-256").digest(all.toByteArray());
    }
}
