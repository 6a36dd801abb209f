package io.idempotence.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FieldDigestTest {
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

    @Test
    void digestsDoNotShareWhatTheyWereGiven() {
        FieldDigest one = new FieldDigest().add("one");
        byte[] two = new FieldDigest().add("two").digest();
        assertThat(new FieldDigest().add("two").digest()).isEqualTo(two);
        assertThat(Arrays.equals(one.digest(), two)).isFalse();
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
