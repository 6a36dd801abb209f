package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.StorageKey;
import java.net.http.HttpResponse;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;

/** Storages that fail in ways of their own. Those in which Redis fails are in {@code PairStorageFailureIT}. */
class StorageFailuresIT extends FilterTestBase {
    @Test
    @DisplayName("T21, P6: whatever a storage throws at a claim, nothing runs")
    void whateverAStorageThrowsAtAClaimNothingRuns() {
        FaultyStorage storage = new FaultyStorage(redisStorage()).before((call, key) -> {
            throw new IllegalStateException("a bug of this storage");
        });
        ServletServer server =
                serve(idempotence(storage), (request, response) -> respond(response, 200, "ok"), filter -> filter);
        HttpResponse<byte[]> response = call(server);
        assertThat(response.statusCode()).isEqualTo(503);
        assertThat(refusal(response)).isEqualTo("storage-unavailable");
        assertThat(response.headers().firstValue("Retry-After")).contains("1");
        assertThat(text(response)).contains("\"retryable\":true", "\"safeNewId\":false");
        assertThat(runs).hasValue(0);
        assertThat(events).containsExactly(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("T20, P6: a stored response that cannot be read is refused and reported, and nothing runs")
    void aStoredResponseThatCannotBeReadIsRefusedAndReported() {
        AtomicReference<StorageKey> key = new AtomicReference<>();
        ServletServer server = serve((request, response) -> {
            key.set(IdempotenceFilter.execution(request).orElseThrow().key());
            respond(response, 201, "paid");
        });
        assertThat(call(server).statusCode()).isEqualTo(201);
        try (Jedis jedis = redis.server().jedis()) {
            // The first byte of the response, which is behind the head of the record:
            // of a kind that this version does not know.
            jedis.setrange(key.get().value(), 54, "~");
        }
        HttpResponse<byte[]> second = call(server);
        assertThat(second.statusCode()).isEqualTo(503);
        assertThat(refusal(second)).isEqualTo("storage-unavailable");
        assertThat(second.headers().firstValue("Retry-After")).contains("1");
        assertThat(replayed(second)).isFalse();
        assertThat(runs).hasValue(1);
        assertThat(events)
                .containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.REPLAYED, IdempotenceEvent.STORAGE_ERROR);
    }
}
