package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.http.Fault;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.hc5.ApacheHttp5Client;
import feign.hc5.AsyncApacheHttp5Client;
import feign.http2client.Http2Client;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The HTTP clients that docs/feign.md lists, each set up as it says there. */
class SupportedFeignClientsIT extends WireMockTestBase {
    private static final Path PAGE = Path.of("../docs/feign.md");
    private static final Pattern ROW = Pattern.compile("^\\| `([\\w.]+)` \\|", Pattern.MULTILINE);

    private final List<AutoCloseable> toClose = new ArrayList<>();
    private Supported client = Supported.DEFAULT;

    /** A row of the page, plain or for futures. */
    enum Supported {
        DEFAULT("feign.Client.Default"),
        DEFAULT_ASYNC("feign.Client.Default"),
        OKHTTP("feign.okhttp.OkHttpClient"),
        OKHTTP_ASYNC("feign.okhttp.OkHttpClient"),
        HC5("feign.hc5.ApacheHttp5Client"),
        HC5_ASYNC("feign.hc5.AsyncApacheHttp5Client"),
        JAVA11("feign.http2client.Http2Client"),
        JAVA11_ASYNC("feign.http2client.Http2Client");

        private final String row;

        Supported(String row) {
            this.row = row;
        }
    }

    @Override
    BaseBuilder<?, ?> builder() {
        return switch (client) {
            case DEFAULT -> Feign.builder().client(new Client.Default(null, null));
            case DEFAULT_ASYNC -> AsyncFeign.builder().client(waitingClient());
            case OKHTTP -> Feign.builder().client(okHttpOnce());
            case OKHTTP_ASYNC -> AsyncFeign.builder().client(okHttpOnce());
            case HC5 -> Feign.builder().client(new ApacheHttp5Client(hc5()));
            case HC5_ASYNC -> AsyncFeign.<HttpClientContext>builder().client(new AsyncApacheHttp5Client(hc5Async()));
            case JAVA11 -> Feign.builder().client(new Http2Client());
            case JAVA11_ASYNC -> AsyncFeign.builder().client(new Http2Client());
        };
    }

    private feign.okhttp.OkHttpClient okHttpOnce() {
        return new feign.okhttp.OkHttpClient(
                okHttp.newBuilder().retryOnConnectionFailure(false).build());
    }

    private CloseableHttpClient hc5() {
        CloseableHttpClient hc5 = HttpClients.custom().disableAutomaticRetries().build();
        toClose.add(hc5);
        return hc5;
    }

    private CloseableHttpAsyncClient hc5Async() {
        CloseableHttpAsyncClient hc5 =
                HttpAsyncClients.custom().disableAutomaticRetries().build();
        hc5.start();
        toClose.add(hc5);
        return hc5;
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable closeable : toClose) {
            closeable.close();
        }
    }

    @Test
    void areThoseThatThePageLists() throws IOException {
        try (Stream<MatchResult> rows = ROW.matcher(Files.readString(PAGE)).results()) {
            assertThat(rows.map(row -> row.group(1)))
                    .containsExactlyInAnyOrderElementsOf(Stream.of(Supported.values())
                            .map(supported -> supported.row)
                            .distinct()
                            .toList());
        }
    }

    @ParameterizedTest
    @EnumSource
    void everyAttemptIsOneRequestUnderTheSameId(Supported supported) {
        client = supported;
        attemptsUpTo(2, status(503));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(received()).hasSize(3);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
    }

    @ParameterizedTest
    @EnumSource
    void readTimeoutIsFollowedByTheSameCall(Supported supported) {
        client = supported;
        attempt(1, ok().withFixedDelay(1_500));
        Orders orders = orders(fast().maxAttempts(50), builder -> builder.options(readTimeout(500)));
        assertThat(orders.create("x")).isEqualTo(OK);
        // On a busy machine a later attempt may time out, too.
        assertThat(received()).hasSizeGreaterThan(1);
        assertOneId();
    }

    @ParameterizedTest
    @EnumSource
    void interruptedConnectionsEndInTheUnknown(Supported supported) {
        client = supported;
        alwaysGet(aResponse().withFault(Fault.EMPTY_RESPONSE));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(received()).hasSize(3);
        assertOneId();
        assertEnd(UNKNOWN, 3);
    }

    @ParameterizedTest
    @EnumSource
    void refusedConnectionIsNoDoubt(Supported supported) {
        client = supported;
        Orders orders = target(install(feign(), fast().build()), nobody());
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignException.class)
                .isNotInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(FAILED, 3);
    }

    /** Why the page asks for {@code disableAutomaticRetries}. */
    @Test
    void apacheClientSendsAgainByItselfUnlessToldNotTo() {
        requestsGet(status(503).withHeader("Retry-After", "0"));
        Orders orders = target(install(Feign.builder().client(new ApacheHttp5Client()), fast().build()));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertThat(received()).hasSize(2);
        assertEnd(SUCCEEDED, 1);
    }
}
