package io.idempotence.examples.payments.network;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.examples.payments.provider.Ledger;
import io.idempotence.examples.payments.provider.PaymentProvider;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests that what reaches the provider in spite of a fault is paid, and nothing else is. */
class LossyNetworkTest {
    private static final Duration READ_TIMEOUT = Duration.ofSeconds(3);
    private static final Duration PATIENT = Duration.ofMinutes(2);

    private final FaultPlan plan = FaultPlan.ofSeed(1);
    private final Ledger ledger = new Ledger();
    private final PaymentProvider provider = PaymentProvider.startPlain("provider", ledger);
    private final LossyNetwork network = LossyNetwork.open(plan, READ_TIMEOUT, List.of(provider.port()));
    private final HttpClient client = HttpClient.newHttpClient();

    @AfterEach
    void stop() {
        network.close();
        provider.close();
    }

    @Test
    void lateResponseIsPaidAndTimesOut() throws Exception {
        // The first request loads classes. On a busy machine that takes longer than the read timeout.
        assertThatThrownBy(() -> pay(Fault.RESET_BEFORE, PATIENT)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> pay(Fault.RESPONSE_LATE, READ_TIMEOUT)).isInstanceOf(HttpTimeoutException.class);
        assertThat(payments()).isEqualTo(1);
    }

    @Test
    void resetBeforeIsNotPaid() throws Exception {
        assertThatThrownBy(() -> pay(Fault.RESET_BEFORE, PATIENT))
                .isInstanceOf(IOException.class)
                .isNotInstanceOf(HttpTimeoutException.class);
        assertThat(payments()).isZero();
        assertThat(network.requests()).isPositive();
        assertThat(network.forwarded(0)).isZero();
    }

    private HttpResponse<String> pay(Fault fault, Duration timeout) throws Exception {
        int order = IntStream.rangeClosed(1, 1000)
                .filter(candidate -> plan.fault(candidate, 1) == fault)
                .findFirst()
                .orElseThrow();
        HttpRequest request = HttpRequest.newBuilder(URI.create(network.url() + "/payments"))
                .version(HttpClient.Version.HTTP_1_1)
                .timeout(timeout)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\"order\":" + order + ",\"cents\":100}"))
                .build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    /** When everything that is on its way has arrived. */
    private int payments() throws InterruptedException {
        network.close();
        provider.awaitHandled(network.forwarded(0));
        return ledger.payments().size();
    }
}
