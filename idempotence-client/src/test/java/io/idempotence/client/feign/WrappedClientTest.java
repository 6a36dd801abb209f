package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.Capability;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.Response;
import feign.Util;
import feign.codec.ErrorDecoder;
import io.idempotence.client.feign.TestServer.Reply;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** HTTP clients that wrap other clients, and HTTP clients of unknown classes. */
class WrappedClientTest extends FeignTestBase {
    /** A client that wraps another one, like those of load balancers and of tracing. */
    private static class Around implements Client {
        private final Client delegate;

        Around(Client delegate) {
            this.delegate = delegate;
        }

        @Override
        public Response execute(Request request, Request.Options options) throws IOException {
            return delegate.execute(request, options);
        }
    }

    /** A client that wraps another one and hides it. */
    private record Hiding(Supplier<Client> clients) implements Client {
        @Override
        public Response execute(Request request, Request.Options options) throws IOException {
            return clients.get().execute(request, options);
        }
    }

    private static final class FailingOver extends Around {
        @SuppressWarnings("UnusedVariable") // It is there for who looks into the wrapper.
        private final Client second = new Client.Default(null, null, false);

        FailingOver(Client first) {
            super(first);
        }
    }

    private static Client streaming() {
        return new Client.Default(null, null);
    }

    static Stream<Client> clientsThatDoNotFollow() {
        Client streaming = streaming();
        return Stream.of(
                streaming,
                new Client.Proxied(null, null, Proxy.NO_PROXY),
                (request, options) -> streaming.execute(request, options),
                new Around(new Around(streaming)),
                new Hiding(() -> streaming),
                new FailingOver(streaming));
    }

    @ParameterizedTest
    @MethodSource("clientsThatDoNotFollow")
    void pageOfALoginIsNotTakenForTheResultOfAPost(Client client) {
        server.respond(Reply.status(302).header("Location", "/login"), Reply.ok("please sign in"));
        Orders orders = target(IdempotentFeign.install(Feign.builder().client(client), fast().build()));
        FeignException end = catchThrowableOfType(FeignException.class, () -> orders.create("x"));
        assertThat(end.status()).isEqualTo(302);
        assertThat(server.requests()).hasSize(1);
    }

    /** HttpURLConnection follows with a GET where it held the body back. */
    @Test
    void redirectIsFollowedAsTheOnlyClientInsideDoes() {
        server.respond(Reply.status(302).header("Location", "/created"));
        Client client = new Around(new Client.Default(null, null, false));
        Orders orders = target(IdempotentFeign.install(Feign.builder().client(client), fast().build()));
        assertThat(orders.create("x")).isEqualTo("ok");
        assertThat(server.requests())
                .last()
                .satisfies(request -> assertThat(request.method()).isEqualTo("GET"));
    }

    /** A stream that does not decompress, although its name looks like it. */
    private static final class NotCompressedStream extends ByteArrayInputStream {
        NotCompressedStream() {
            super(new byte[0]);
        }
    }

    @Test
    void nameOfAStreamDoesNotProveThatAnEmptyResponseIsWhole() {
        Client client = (request, options) -> Response.builder()
                .status(200)
                .headers(Map.of())
                .request(request)
                .body(new NotCompressedStream(), null)
                .build();
        Orders orders = target(IdempotentFeign.install(
                Feign.builder().client(client), fast().maxAttempts(1).build()));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
    }

    /** A client that keeps bodies for a log, say. */
    @Test
    void bodyOfAnErrorThatCanBeReadAgainStillCanBe() {
        Client streaming = streaming();
        Client buffering = (request, options) -> {
            Response response = streaming.execute(request, options);
            return response.toBuilder()
                    .body(Util.toByteArray(response.body().asInputStream()))
                    .build();
        };
        ErrorDecoder reading = (method, response) -> {
            assertThat(response.body().isRepeatable()).isTrue();
            assertThat(textOf(response)).isEqualTo("no tea");
            return new ErrorDecoder.Default().decode(method, response);
        };
        server.respond(Reply.status(422).body("no tea"));
        Orders orders = target(
                IdempotentFeign.install(Feign.builder().client(buffering).errorDecoder(reading), fast().build()));
        FeignException end = catchThrowableOfType(FeignException.class, () -> orders.create("x"));
        assertThat(end.status()).isEqualTo(422);
        assertThat(end.contentUTF8()).isEqualTo("no tea");
    }

    /** A capability whose client repeats a request that failed. */
    public static final class Repeating implements Capability {
        private final Runnable beforeTheSecond;

        Repeating(Runnable beforeTheSecond) {
            this.beforeTheSecond = beforeTheSecond;
        }

        @Override
        public Client enrich(Client client) {
            return (request, options) -> {
                try {
                    return client.execute(request, options);
                } catch (IOException lost) {
                    beforeTheSecond.run();
                    return client.execute(request, options);
                }
            };
        }
    }

    /** The call ended as not sent: what became of the first request was forgotten. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void repetitionThatIsWithheldLeavesTheDoubtOfTheFirstRequest(boolean isInterrupted) {
        warmUp();
        CountDownLatch received = new CountDownLatch(1);
        server.respond(Reply.hang().before(received::countDown));
        Duration deadline = Duration.ofSeconds(isInterrupted ? 20 : 3);
        Runnable beforeTheSecond = () -> {
            await(received);
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            } else {
                LockSupport.parkNanos(deadline.toNanos());
            }
        };
        Orders orders = target(IdempotentFeign.install(
                        Feign.builder().client(streaming()).options(readTimeout(300)),
                        fast().deadline(deadline).build())
                .addCapability(new Repeating(beforeTheSecond)));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(Thread.interrupted()).isEqualTo(isInterrupted);
        assertThat(server.requests()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String textOf(Response response) {
        try {
            return Util.toString(response.body().asReader(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** java.net.http keeps a client with its threads for each connect timeout, and may be inside of what is not known. */
    @Test
    void connectTimeoutsOfAnUnknownClientHaveFewValuesAndNeverOutlastTheDeadline() {
        List<Integer> timeouts = new ArrayList<>();
        Client streaming = streaming();
        Client measuring = new Hiding(() -> streaming);
        HttpClientTraits client = HttpClientTraits.of(measuring);
        for (int left = 1; left <= 10_000; left++) {
            int timeout =
                    FeignExchange.clip(new Request.Options(), left, client).connectTimeoutMillis();
            assertThat(timeout).isBetween(1, left);
            timeouts.add(timeout);
        }
        assertThat(timeouts.stream().distinct()).hasSizeLessThan(20);
    }
}
