package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/**
 * The records of {@code redis-format-2.txt} and similar files, and how every version must read them: services of two versions run side by
 * side while the newer one is rolled out.
 */
public final class Formats {
    private static final Duration LEASE = Duration.ofSeconds(30);
    /** What records have to live that are put into a storage as they are. */
    public static final Duration RETENTION = Duration.ofHours(1);

    private static final Owner OWNER = new Owner(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
    private static final Owner OTHER = new Owner(7, 7);
    private static final Fingerprint FINGERPRINT =
            Fingerprint.of(HexFormat.of().parseHex("202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"));

    private Formats() {}

    /** The lines of one of the files, split at blanks; the first word is the record's name. */
    public static Stream<List<String>> records(String file) {
        try (InputStream in = Formats.class.getResourceAsStream(file)) {
            return new String(in.readAllBytes(), StandardCharsets.US_ASCII)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .map(line -> List.of(line.split(" ", -1)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Holds a storage to what the record of a name means, by every call. */
    public static void assertRead(String name, IdempotenceStorage storage, StorageKey key) {
        assertThat(storage.claim(request(key, Fingerprint.NONE, OTHER, true)))
                .as("another request, T4")
                .isInstanceOf(ClaimResult.KeyReused.class);
        switch (name) {
            case "claimed" -> {
                assertState(storage, key, State.IN_PROGRESS, 1);
                assertThat(claim(storage, key, OTHER)).isInstanceOf(ClaimResult.InProgress.class);
                assertThat(storage.renew(own(key, 1), LEASE)).isEqualTo(new WriteResult.Done());
                assertThat(storage.complete(own(key, 1), new byte[] {2, 9}, RETENTION))
                        .isEqualTo(new WriteResult.Done());
                assertResult(storage, key, new byte[] {2, 9});
            }
            case "taken-over" -> {
                assertState(storage, key, State.IN_PROGRESS, 2);
                assertThat(claim(storage, key, OWNER)).isEqualTo(new ClaimResult.Claimed(own(key, 2), true));
                assertThat(storage.release(own(key, 2), RETENTION)).isEqualTo(new WriteResult.Done());
            }
            case "abandoned" -> {
                assertState(storage, key, State.ABANDONED, 3);
                assertThat(claim(storage, key, OTHER)).isEqualTo(new ClaimResult.Abandoned(3));
                assertThat(storage.claim(request(key, FINGERPRINT, OTHER, true)))
                        .isEqualTo(new ClaimResult.Claimed(new Claim(key, FINGERPRINT, OTHER, 4), true));
            }
            case "completed" ->
                assertResult(
                        storage,
                        key,
                        HexFormat.of()
                                .parseHex(
                                        "010000c9030100106170706c69636174696f6e2f6a736f6e0200092f6f72646572732f370006582d"
                                                + "546965720004676f6c647b2270616964223a223520e282ac227d"));
            case "completed-by-redirect" ->
                assertResult(storage, key, HexFormat.of().parseHex("0102012f010200092f6f72646572732f37"));
            case "completed-by-error" ->
                assertResult(storage, key, HexFormat.of().parseHex("01010192006e6f206d6f6e6579"));
            case "completed-by-work" -> assertResult(storage, key, "\2paid €".getBytes(StandardCharsets.UTF_8));
            case "completed-by-work-with-null" -> assertResult(storage, key, new byte[] {3});
            case "completed-without-result" -> assertResult(storage, key, ClaimResult.noResult());
            case "released" -> {
                assertState(storage, key, State.RELEASED, 5);
                assertThat(claim(storage, key, OTHER))
                        .isEqualTo(new ClaimResult.Claimed(new Claim(key, FINGERPRINT, OTHER, 6), false));
            }
            case "unknown" -> {
                assertState(storage, key, State.UNKNOWN, 6);
                assertThat(claim(storage, key, OTHER)).isEqualTo(new ClaimResult.Unknown());
                assertThat(storage.resolve(key, 6, Resolution.APPLIED, RETENTION))
                        .isTrue();
                assertResult(storage, key, ClaimResult.noResult());
            }
            default -> throw new AssertionError("nothing is expected of " + name);
        }
    }

    /** Holds a storage to refusing a record of a newer format, whatever it is asked. */
    public static void assertNewerFormatIsRefused(IdempotenceStorage storage, StorageKey key, String message) {
        List<Runnable> calls = List.of(
                () -> claim(storage, key, OTHER),
                () -> claim(storage, key, OWNER),
                () -> storage.renew(own(key, 1), LEASE),
                () -> storage.complete(own(key, 1), new byte[] {2}, RETENTION),
                () -> storage.release(own(key, 1), RETENTION),
                () -> storage.markUnknown(own(key, 1), RETENTION),
                () -> storage.resolve(key, 1, Resolution.NOT_APPLIED, RETENTION),
                () -> storage.find(key));
        for (Runnable call : calls) {
            assertThatThrownBy(call::run)
                    .isInstanceOf(CorruptRecordException.class)
                    .hasMessageContaining(message)
                    .hasMessageNotContaining(key.value());
        }
    }

    private static ClaimRequest request(StorageKey key, Fingerprint fingerprint, Owner owner, boolean takeOver) {
        return new ClaimRequest(key, fingerprint, owner, LEASE, RETENTION, takeOver);
    }

    private static ClaimResult claim(IdempotenceStorage storage, StorageKey key, Owner owner) {
        return storage.claim(request(key, FINGERPRINT, owner, false));
    }

    private static Claim own(StorageKey key, long fence) {
        return new Claim(key, FINGERPRINT, OWNER, fence);
    }

    private static void assertState(IdempotenceStorage storage, StorageKey key, State state, long fence) {
        IdempotenceRecord record = storage.find(key).orElseThrow();
        assertThat(record.state()).isEqualTo(state);
        assertThat(record.fence()).isEqualTo(fence);
    }

    private static void assertResult(IdempotenceStorage storage, StorageKey key, byte[] result) {
        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.COMPLETED);
        assertThat(((ClaimResult.Completed) claim(storage, key, OTHER)).result())
                .isEqualTo(result);
    }
}
