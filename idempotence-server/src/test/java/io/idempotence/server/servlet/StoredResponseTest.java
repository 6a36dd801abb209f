package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.servlet.StoredResponse.BodyOutput;
import io.idempotence.server.servlet.StoredResponse.Form;
import io.idempotence.server.servlet.StoredResponse.StoredHeader;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StoredResponseTest {
    private final StoredResponse response = new StoredResponse(
            Form.WRITTEN,
            201,
            List.of(
                    new StoredHeader("Content-Type", "application/json"),
                    new StoredHeader("X-Ünusual", "grüße"),
                    new StoredHeader("Location", "/p/1")),
            new byte[] {0, 1, -1});

    @Test
    void isReadBackAsItWas() {
        StoredResponse read = StoredResponse.fromBytes(response.toBytes());
        assertThat(read.form()).isEqualTo(Form.WRITTEN);
        assertThat(read.status()).isEqualTo(201);
        assertThat(read.headers()).isEqualTo(response.headers());
        assertThat(read.body()).isEqualTo(response.body());
    }

    @Test
    void aReaderOfTheBodyTakesNothingFromTheNext() {
        response.body().get();
        assertThat(response.body().remaining()).isEqualTo(3);
    }

    @Test
    void everyTruncationAndUnknownKindIsNoticed() {
        byte[] bytes = response.toBytes();
        int bodyLength = response.body().remaining();
        for (int length = 0; length < bytes.length - bodyLength; length++) {
            byte[] truncated = Arrays.copyOf(bytes, length);
            assertThatThrownBy(() -> StoredResponse.fromBytes(truncated)).isInstanceOf(CorruptRecordException.class);
        }
        for (int position : new int[] {0, 1, 5}) {
            byte[] damaged = bytes.clone();
            damaged[position] = 15;
            assertThatThrownBy(() -> StoredResponse.fromBytes(damaged)).isInstanceOf(CorruptRecordException.class);
        }
    }

    @Test
    void headersThatDoNotFitMakeTheResultUnavailable() {
        StoredHeader huge = new StoredHeader("Link", "x".repeat(70_000));
        assertThat(new StoredResponse(Form.WRITTEN, 200, List.of(huge), new byte[0]).toBytes())
                .isEqualTo(ClaimResult.noResult());
        StoredHeader small = new StoredHeader("Link", "x");
        assertThat(new StoredResponse(Form.WRITTEN, 200, Collections.nCopies(300, small), new byte[0]).toBytes())
                .isEqualTo(ClaimResult.noResult());
    }

    @Test
    void headersThatJustFitAreKept() {
        StoredHeader longest = new StoredHeader("Link", "x".repeat(0xFFFF));
        StoredHeader longestName = new StoredHeader("x".repeat(255), "1");
        StoredHeader last = new StoredHeader("Content-Encoding", "br");
        for (List<StoredHeader> headers :
                List.of(List.of(longest, longestName, last), Collections.nCopies(255, last))) {
            byte[] bytes = new StoredResponse(Form.WRITTEN, 200, headers, new byte[0]).toBytes();
            assertThat(StoredResponse.fromBytes(bytes).headers()).isEqualTo(headers);
        }
        StoredHeader tooLongName = new StoredHeader("x".repeat(256), "1");
        assertThat(new StoredResponse(Form.WRITTEN, 200, List.of(tooLongName), new byte[0]).toBytes())
                .isEqualTo(ClaimResult.noResult());
    }

    @Test
    void aStatusHasThreeDigits() {
        for (int status : new int[] {100, 999}) {
            StoredResponse edge = new StoredResponse(Form.WRITTEN, status, List.of(), new byte[0]);
            assertThat(StoredResponse.fromBytes(edge.toBytes()).status()).isEqualTo(status);
        }
        for (int status : new int[] {99, 1000}) {
            assertThatThrownBy(() -> new StoredResponse(Form.WRITTEN, status, List.of(), new byte[0]))
                    .isInstanceOf(IllegalArgumentException.class);
            byte[] damaged = response.toBytes();
            damaged[2] = (byte) (status >> 8);
            damaged[3] = (byte) status;
            assertThatThrownBy(() -> StoredResponse.fromBytes(damaged)).isInstanceOf(CorruptRecordException.class);
        }
    }

    @Test
    void textIsReadAsItWasStored() {
        for (int bits = 0; bits < 8; bits++) {
            BodyOutput output = new BodyOutput("UTF-8", (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0);
            StoredResponse text =
                    new StoredResponse(Form.REDIRECT, output, 303, List.of(), ByteBuffer.wrap(new byte[] {1, 2}));
            assertThat(StoredResponse.fromBytes(text.toBytes()))
                    .usingRecursiveComparison()
                    .isEqualTo(text);
            byte[] damaged = text.toBytes();
            damaged[6] = 'X';
            assertThatThrownBy(() -> StoredResponse.fromBytes(damaged)).isInstanceOf(CorruptRecordException.class);
        }
    }

    @Test
    void aTypicalResponseIsSmall() {
        StoredResponse created = new StoredResponse(
                Form.WRITTEN,
                201,
                List.of(
                        new StoredHeader("Content-Type", "application/json"),
                        new StoredHeader("Location", "/payments/8e03978e-40d5-43e8-bc93-6894a57f9324")),
                new byte[0]);
        assertThat(created.toBytes().length).isLessThanOrEqualTo(74);
    }

    /** The bytes that are in the files of stored formats, which every later version must read. */
    @Test
    void isStoredInTheSameBytesByEveryVersion() {
        Map<String, StoredResponse> stored = Map.of(
                "010000c9030100106170706c69636174696f6e2f6a736f6e0200092f6f72646572732f370006582d546965720004676f6c64"
                        + "7b2270616964223a223520e282ac227d",
                new StoredResponse(
                        Form.WRITTEN,
                        201,
                        List.of(
                                new StoredHeader("Content-Type", "application/json"),
                                new StoredHeader("Location", "/orders/7"),
                                new StoredHeader("X-Tier", "gold")),
                        "{\"paid\":\"5 €\"}".getBytes(StandardCharsets.UTF_8)),
                "0102012f010200092f6f72646572732f37",
                new StoredResponse(Form.REDIRECT, 303, List.of(new StoredHeader("Location", "/orders/7")), new byte[0]),
                "01010192006e6f206d6f6e6579",
                new StoredResponse(Form.ERROR, 402, List.of(), "no money".getBytes(StandardCharsets.US_ASCII)));
        stored.forEach((hex, expected) -> {
            byte[] bytes = HexFormat.of().parseHex(hex);
            assertThat(StoredResponse.fromBytes(bytes))
                    .usingRecursiveComparison()
                    .isEqualTo(expected);
            assertThat(expected.toBytes()).isEqualTo(bytes);
        });
    }
}
