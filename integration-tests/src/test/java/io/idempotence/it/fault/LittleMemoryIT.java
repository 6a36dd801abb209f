package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("all")
class LittleMemoryIT {
    private static final int DUPLICATES = 30;
    private static final byte[] BODY = new byte[8 << 20];

    private final String id = UUID.randomUUID().toString();

    private HttpRequest payment(ProviderProcess provider) {
        return HttpRequest.newBuilder(provider.uri("/payments"))
                .timeout(Duration.ofMinutes(1))
                .header("Idempotency-Key", id)
                .header("Prefer", "wait=60")
                .POST(HttpRequest.BodyPublishers.ofByteArray(BODY))
                .build();
    }

    /** A caller that is refused for want of memory asks again, as a client does. */
    private HttpResponse<byte[]> payUntilTaken(ProviderProcess provider) {
        AtomicReference<HttpResponse<byte[]>> last = new AtomicReference<>();
        await().until(() -> {
            HttpResponse<byte[]> response = Http.send(payment(provider));
            last.set(response);
            boolean isOverloaded = response.statusCode() == 503;
            assertThat(response.headers().firstValue("Retry-After").isPresent()).isEqualTo(isOverloaded);
            return !isOverloaded;
        });
        return last.get();
    }

    private static int claims(ProviderProcess provider) {
        URI claims = provider.uri("/claims");
        return Integer.parseInt(text(Http.send(HttpRequest.newBuilder(claims).build())));
    }

    @Test
    @DisplayName("30 duplicates with bodies of 8 MiB wait in a heap of 192 MiB")
    void waitingDuplicatesExhaustedTheHeap() throws Exception {
        ExecutorService callers = Executors.newFixedThreadPool(DUPLICATES);
        try (ProviderProcess provider =
                ProviderProcess.start(List.of("-Xmx192m", "-XX:+ExitOnOutOfMemoryError"), SmallProvider.class)) {
            CompletableFuture<HttpResponse<byte[]>> first = Http.sendAsync(payment(provider));
            provider.awaitHold();
            List<CompletableFuture<HttpResponse<byte[]>>> duplicates = IntStream.range(0, DUPLICATES)
                    .mapToObj(each -> CompletableFuture.supplyAsync(() -> payUntilTaken(provider), callers))
                    .toList();
            await().until(() -> claims(provider) >= 1 + DUPLICATES);
            assertThat(duplicates).noneMatch(CompletableFuture::isDone);
            provider.resume();

            HttpResponse<byte[]> executed = first.join();
            assertThat(refusal(executed)).isNull();
            assertThat(text(executed)).isEqualTo(BODY.length + " bytes, run 1");
            assertThat(duplicates)
                    .extracting(CompletableFuture::join)
                    .allMatch(duplicate -> replayed(duplicate)
                            && duplicate.statusCode() == 201
                            && text(duplicate).equals(text(executed)));
        } finally {
            callers.shutdownNow();
        }
    }
}
