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
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RequestRefused;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** A client with the client half in it, which makes one call at a time. */
final class ChaosClient {
    static final Duration DEADLINE = Duration.ofSeconds(8);
    static final String CONTENT_TYPE = "text/plain";
    static final Duration READ_TIMEOUT = Duration.ofMillis(1_500);

    /** Makes a request and says how it ended, or throws. */
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
    private final Current current;

    private ChaosClient(String name, Current current, Sender sender) {
        this.name = name;
        this.current = current;
        this.sender = sender;
    }

    /** Which it is. */
    String name() {
        return name;
    }

    /** The call that is made: when it began, and the IDs that were generated for it. Used by one thread. */
    private static final class Current implements IdempotenceIdGenerator {
        private final List<String> generated = new ArrayList<>();
        private long begunAt;

        void begin() {
            begunAt = System.nanoTime();
        }

        @Override
        public IdempotenceId generateId() {
            IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
            generated.add(id.value());
            return id;
        }
    }

    static ChaosClient feign(String name, Client http, String url) {
        Current current = new Current();
        Feign.Builder builder = Feign.builder()
                .client(http)
                .options(new Options(1, TimeUnit.SECONDS, READ_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS, true));
        Effects effects = IdempotentFeign.install(builder, config(current))
                .target(new HardCodedTarget<>(Effects.class, "effects", url));
        return new ChaosClient(name, current, work -> new Ending.Answered(effects.perform(work.body())));
    }

    static ChaosClient okHttp(String url) {
        Current current = new Current();
        OkHttpClient client = IdempotentOkHttp.install(
                        new OkHttpClient.Builder().readTimeout(READ_TIMEOUT), config(current), "effects")
                .build();
        return new ChaosClient("okhttp", current, work -> {
            Request.Builder request = new Request.Builder()
                    .url(url + ChaosProvider.PATH)
                    .post(RequestBody.create(
                            work.body().getBytes(StandardCharsets.UTF_8), MediaType.get(CONTENT_TYPE)));
            while (true) {
                try (Response response = client.newCall(request.build()).execute()) {
                    return read(response);
                } catch (BodyBrokeOffException e) {
                    // The body is the caller's to read: the call is made again under its ID.
                    request.header("Idempotency-Key", current.generated.get(0));
                    current.begin();
                }
            }
        });
    }

    private static Ending read(Response response) throws BodyBrokeOffException {
        String body;
        try {
            body = response.body().string();
        } catch (IOException e) {
            throw new BodyBrokeOffException(e);
        }
        String refusal = response.header("Idempotency-Refusal");
        if (refusal != null) {
            return refused(refusal);
        }
        return switch (response.code()) {
            case 201 -> new Ending.Answered(body);
            case ChaosProvider.REJECTED -> new Ending.Rejected(body);
            default -> new Ending.Failed("status " + response.code());
        };
    }

    private static final class BodyBrokeOffException extends Exception {
        private static final long serialVersionUID = 1L;

        private BodyBrokeOffException(IOException cause) {
            super(cause);
        }
    }

    private static IdempotenceClientConfig config(IdempotenceIdGenerator ids) {
        return IdempotenceClientConfig.builder()
                .generator(ids)
                .deadline(DEADLINE)
                .maxAttempts(100)
                .waitBound(Duration.ofMillis(20))
                .maxWait(Duration.ofMillis(300))
                .preferWait(Duration.ofSeconds(1))
                .budget(100_000, 1, 1)
                .build();
    }

    Call call(Work work) {
        current.generated.clear();
        current.begin();
        Ending ending = send(work);
        return new Call(
                work.call(), List.copyOf(current.generated), current.begunAt, System.nanoTime(), ending, ending);
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
