package io.idempotence.it.chaos;

import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Headers;
import feign.Request.Options;
import feign.RequestLine;
import feign.Target.HardCodedTarget;
import io.idempotence.IdempotenceId;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RequestRefused;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** A client with the client half in it, which makes one call at a time. */
final class ChaosClient {
    static final String CONTENT_TYPE = "text/plain";
    static final Duration READ_TIMEOUT = Duration.ofMillis(1_500);

    /** A function that makes a request and returns how it ended, or throws. */
    private interface Sender {
        Ending send(Work work) throws IOException;
    }

    private interface Effects {
        @RequestLine("POST " + ChaosProvider.PATH)
        @Headers("Content-Type: " + CONTENT_TYPE)
        String perform(String body);
    }

    private final String name;
    private final Sender sender;
    private final Generated generated;

    private ChaosClient(String name, Generated generated, Sender sender) {
        this.name = name;
        this.generated = generated;
        this.sender = sender;
    }

    /** The kind of HTTP client. */
    String name() {
        return name;
    }

    /** The IDs that were generated for the current call. Used by one thread. */
    private static final class Generated implements IdempotenceIdGenerator {
        private final List<IdempotenceId> ids = new ArrayList<>();

        @Override
        public IdempotenceId generateId() {
            IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
            ids.add(id);
            return id;
        }
    }

    static ChaosClient feign(String name, Client http, String url, Duration deadline) {
        Generated generated = new Generated();
        Feign.Builder builder = Feign.builder()
                .client(http)
                .options(new Options(1, TimeUnit.SECONDS, READ_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS, true));
        Effects effects = IdempotentFeign.install(builder, config(generated, deadline))
                .target(new HardCodedTarget<>(Effects.class, "effects", url));
        return new ChaosClient(name, generated, work -> new Ending.Responded(effects.perform(work.body())));
    }

    static ChaosClient okHttp(String url, Duration deadline) {
        Generated generated = new Generated();
        OkHttpClient client = IdempotentOkHttp.install(
                        new OkHttpClient.Builder().readTimeout(READ_TIMEOUT), config(generated, deadline), "effects")
                .build();
        return new ChaosClient("okhttp", generated, work -> {
            Request request = new Request.Builder()
                    .url(url + ChaosProvider.PATH)
                    .post(RequestBody.create(work.body().getBytes(StandardCharsets.UTF_8), MediaType.get(CONTENT_TYPE)))
                    .build();
            Instant firstSentAt = Instant.now();
            long end = System.nanoTime() + deadline.toNanos();
            Optional<Ending> first = execute(client.newCall(request));
            return first.isPresent()
                    ? first.get()
                    : executeAgain(client, request, generated.ids.get(0), firstSentAt, end);
        });
    }

    /** A body is the caller's to read: if it is interrupted, he makes the call again under its ID in the time that is left. */
    private static Ending executeAgain(
            OkHttpClient client, Request request, IdempotenceId id, Instant firstSentAt, long end) throws IOException {
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            okhttp3.Call call = client.newCall(request);
            call.timeout().timeout(left, TimeUnit.NANOSECONDS);
            Optional<Ending> ending = IdempotenceScope.resume(id, firstSentAt, () -> execute(call));
            if (ending.isPresent()) {
                return ending.get();
            }
        }
        return new Ending.Unknown("every response was interrupted");
    }

    /** Empty if the response was interrupted. */
    private static Optional<Ending> execute(okhttp3.Call call) throws IOException {
        try (Response response = call.execute()) {
            String body;
            try {
                body = response.body().string();
            } catch (IOException e) {
                return Optional.empty();
            }
            String refusal = response.header("Idempotency-Refusal");
            if (refusal != null) {
                return Optional.of(refused(refusal));
            }
            return Optional.of(
                    switch (response.code()) {
                        case 201 -> new Ending.Responded(body);
                        case ChaosProvider.REJECTED -> new Ending.Rejected(body);
                        default -> new Ending.Failed("status " + response.code());
                    });
        }
    }

    private static IdempotenceClientConfig config(IdempotenceIdGenerator ids, Duration deadline) {
        return IdempotenceClientConfig.builder()
                .generator(ids)
                .deadline(deadline)
                .maxAttempts(100)
                .waitBound(Duration.ofMillis(20))
                .maxWait(Duration.ofMillis(300))
                .preferWait(Duration.ofSeconds(1))
                .budget(100_000, 1, 1)
                .build();
    }

    Call call(Work work) {
        generated.ids.clear();
        long begunAt = System.nanoTime();
        Ending ending = send(work);
        List<String> ids = generated.ids.stream().map(IdempotenceId::value).toList();
        return new Call(work.call(), ids, begunAt, System.nanoTime(), ending, ending);
    }

    private Ending send(Work work) {
        try {
            return sender.send(work);
        } catch (IOException | RuntimeException e) {
            if (e instanceof OutcomeUnknown) {
                return new Ending.Unknown(e.toString());
            }
            if (e instanceof RequestRefused refused) {
                return refused(refused.refusal().code());
            }
            return e instanceof FeignException rejected && rejected.status() == ChaosProvider.REJECTED
                    ? new Ending.Rejected(rejected.contentUTF8())
                    : new Ending.Failed(e.toString());
        }
    }

    private static Ending refused(String code) {
        return code.equals(Refusal.RESULT_UNAVAILABLE.code())
                ? new Ending.ResultUnavailable()
                : new Ending.Failed(code);
    }
}
