package io.idempotence.examples.payments.consumer;

import feign.Feign;
import feign.Request;
import feign.Retryer;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import feign.okhttp.OkHttpClient;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** A factory for two kinds of {@link PaymentClient}. Both have the same timeouts, the same number of attempts and about the same waits. */
public final class PaymentClients {
    /** How long an attempt waits for its response. */
    public static final Duration READ_TIMEOUT = Duration.ofMillis(300);

    /** How many attempts a call makes at most. */
    public static final int MAX_ATTEMPTS = 4;

    private static final Duration FIRST_WAIT = Duration.ofMillis(50);
    private static final Duration LONGEST_WAIT = Duration.ofMillis(400);
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);

    private PaymentClients() {}

    /**
     * A client as people write it today: Feign with Feign's own retry.
     *
     * @param url of the payment service
     * @return the client
     */
    @SuppressWarnings("deprecation") // The oldest Feign has it only under this name.
    public static PaymentClient plainRetry(String url) {
        return feign().retryer(new Retryer.Default(FIRST_WAIT.toMillis(), LONGEST_WAIT.toMillis(), MAX_ATTEMPTS))
                .target(PaymentClient.class, url);
    }

    /**
     * The same client with the client half.
     *
     * @param url of the payment service
     * @return the client
     */
    public static PaymentClient idempotent(String url) {
        // The one line that adds the client half.
        return IdempotentFeign.install(feign(), config()).target(PaymentClient.class, url);
    }

    private static Feign.Builder feign() {
        return Feign.builder()
                .client(new OkHttpClient())
                .encoder(new JacksonEncoder())
                .decoder(new JacksonDecoder())
                .options(new Request.Options(
                        CONNECT_TIMEOUT.toMillis(),
                        TimeUnit.MILLISECONDS,
                        READ_TIMEOUT.toMillis(),
                        TimeUnit.MILLISECONDS,
                        true));
    }

    private static IdempotenceClientConfig config() {
        return IdempotenceClientConfig.builder()
                .maxAttempts(MAX_ATTEMPTS)
                .waitBound(FIRST_WAIT)
                .maxWait(LONGEST_WAIT)
                // Below the read timeout, and it counts in whole seconds: none.
                .preferWait(Duration.ZERO)
                // This network spoils every third request.
                // The retry budget is there to stop exactly such storms, so it is off.
                .budget(500, 0, 1)
                .build();
    }
}
