package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MemoryBudgetTest {
    @ParameterizedTest
    @CsvSource({
        // what comes, what was declared, the cap
        "0, 0, 10",
        "0, -1, 10",
        "0, 7, 10",
        "1, -1, 0",
        "51, 51, 10485760",
        "51, -1, 10485760",
        "51, 10, 10485760",
        "51, 60, 10485760",
        "51, 51, 51",
        "52, 51, 51",
        "52, -1, 51",
        "8192, 8192, 10485760",
        "8193, 8193, 10485760",
        "100000, 100000, 10485760",
        "100000, -1, 10485760",
        "100000, -1, 100000",
        "100001, -1, 100000",
        "100000, 100000, 65536",
        "100000, 0, 1073741824",
    })
    void wholeBodyIsReadOrOneByteMoreThanTheCap(int length, long declared, int cap) throws Exception {
        byte[] body = new byte[length];
        new Random(length).nextBytes(body);
        byte[] expected = Arrays.copyOf(body, Math.min(length, cap + 1));

        assertThat(plenty().read(new ByteArrayInputStream(body), declared, cap)).isEqualTo(expected);
        assertThat(plenty().read(new Dripping(body), declared, cap)).isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource({"10, 1073741824", "10, -1", "8192, 1073741824", "100000, 1073741824"})
    void declaredLengthReservesNoMoreThanTwiceWhatHasCome(int length, long declared) throws Exception {
        Dripping in = new Dripping(new byte[length]);

        assertThat(plenty().read(in, declared, 1 << 30)).hasSize(length);
        assertThat(in.mostRoom).isLessThanOrEqualTo(Math.max(8192, length));
    }

    private static MemoryBudget.Share plenty() {
        return new MemoryBudget(Long.MAX_VALUE).share();
    }

    @ParameterizedTest
    @CsvSource({"100000, 100000", "100000, -1", "8193, 1073741824"})
    void bodyIsReadNoFurtherThanThereIsMemory(int length, long declared) {
        MemoryBudget budget = new MemoryBudget(length - 1);
        MemoryBudget.Share share = budget.share();
        InputStream in = new ByteArrayInputStream(new byte[length]);

        assertThatThrownBy(() -> share.read(in, declared, 1 << 30))
                .isInstanceOfSatisfying(
                        RequestNotTakenException.class,
                        e -> assertThat(e.isTooLarge()).isFalse());
        assertThat(budget.used()).isBetween(8192L, (long) length - 1);
        share.close();
        assertThat(budget.used()).isZero();
    }

    /** A stream that returns one byte at a time, and records the most room that a read offered. */
    private static final class Dripping extends InputStream {
        private final ByteArrayInputStream bytes;
        private int mostRoom;

        Dripping(byte[] bytes) {
            this.bytes = new ByteArrayInputStream(bytes);
        }

        @Override
        public int read() {
            return bytes.read();
        }

        @Override
        public int read(byte[] buffer, int offset, int length) {
            mostRoom = Math.max(mostRoom, length);
            return bytes.read(buffer, offset, Math.min(1, length));
        }
    }
}
