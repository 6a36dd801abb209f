package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Feign;
import feign.Request;
import feign.Retryer;
import feign.Target.HardCodedTarget;
import feign.codec.Decoder;
import feign.codec.StringDecoder;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.it.behaviour.Behaviour;
import io.idempotence.it.behaviour.BehaviourServer;
import io.idempotence.it.behaviour.Endings;
import io.idempotence.it.wire.SideBySide;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;

/** Calls that carry no ID. What the caller gets and what goes over the wire is the same with and without the client half. */
class CallsWithoutAnIdIT {
    /** The client itself is a race: whether it sees the response or the reset of a connection that was closed with bytes unread. */
    private static final Set<Behaviour> RACES =
            EnumSet.of(Behaviour.LARGE_REQUEST_AND_DROP, Behaviour.RESPONSE_BEFORE_THE_BODY_WAS_READ);

    /** HttpURLConnection and java.net.http wait for more after these. */
    private static final Set<Behaviour> INTERIM = EnumSet.of(Behaviour.PROCESSING_FIRST, Behaviour.EARLY_HINTS_FIRST);

    /** That of the socket, or that of a watchdog which closes the socket: whichever comes first. */
    private static final Pattern OKHTTP_TIMEOUT =
            Pattern.compile("Read timed out|timeout( <- java.net.SocketException: Socket closed)?");

    private static final int RUNS_ENDED_BY_TIMEOUT = 5;

    private static final Decoder STRINGS = new StringDecoder();

    private enum Call {
        GET((orders, body) -> orders.list()),
        POST(Orders::unprotected),
        PUT(Orders::put),
        DELETE((orders, body) -> orders.delete());

        private final BiFunction<Orders, String, String> call;

        Call(BiFunction<Orders, String, String> call) {
            this.call = call;
        }
    }

    /** What the caller got, and what the server received. */
    private record Run(List<String> endings, List<String> requests) {}

    private record Case(FeignHttpClient client, Call call, Behaviour behaviour) {
        static Stream<Case> all(Call... calls) {
            return Stream.of(FeignHttpClient.values())
                    .flatMap(client -> Stream.of(calls)
                            .filter(call -> call == Call.POST || call == Call.GET || !client.isAsync())
                            .flatMap(call ->
                                    comparable(client).stream().map(behaviour -> new Case(client, call, behaviour))));
        }

        @Override
        public String toString() {
            return client + ", " + call + ", " + behaviour;
        }
    }

    @TestFactory
    Stream<DynamicTest> callWithoutAnIdIsAsWithoutTheClientHalf() {
        return SideBySide.test(
                Case.all(Call.POST).filter(one -> !one.client.isAsync()), CallsWithoutAnIdIT::assertSame);
    }

    @TestFactory
    @Tag("all")
    Stream<DynamicTest> callWithoutAnIdIsAsWithoutTheClientHalfOfAnAsynchronousClient() {
        return SideBySide.test(
                Case.all(Call.GET, Call.POST).filter(one -> one.client.isAsync()), CallsWithoutAnIdIT::assertSame);
    }

    @TestFactory
    @Tag("all")
    Stream<DynamicTest> callWithoutAnIdIsAsWithoutTheClientHalfWithOtherMethods() {
        return SideBySide.test(
                Stream.concat(Case.all(Call.GET).filter(one -> !one.client.isAsync()), Case.all(Call.PUT, Call.DELETE)),
                CallsWithoutAnIdIT::assertSame);
    }

    /**
     * Where a read timeout ends the attempts, a busy machine decides how many requests the server gets, with or without us. Then both run
     * again until one has happened that happens with the other, too.
     */
    private static void assertSame(Case one) throws IOException {
        int runs = endsByTimeout(one.behaviour) ? RUNS_ENDED_BY_TIMEOUT : 1;
        Set<Run> without = new LinkedHashSet<>();
        Set<Run> with = new LinkedHashSet<>();
        try (BehaviourServer server = BehaviourServer.start(one.behaviour)) {
            for (int i = 0; i < runs && Collections.disjoint(with, without); i++) {
                without.add(run(server, one.behaviour, one.client, one.call, builder -> builder));
                with.add(run(server, one.behaviour, one.client, one.call, CallsWithoutAnIdIT::installed));
            }
        }
        if (Collections.disjoint(with, without)) {
            assertThat(with).isEqualTo(without);
        }
    }

    private static boolean endsByTimeout(Behaviour behaviour) {
        return behaviour.isLate() || INTERIM.contains(behaviour);
    }

    /**
     * java.net.http never gives up a body that stalls, with or without us. Of a body that is broken at once, it is a race whether the
     * response or the failure comes first.
     */
    private static Set<Behaviour> comparable(FeignHttpClient client) {
        Set<Behaviour> script = EnumSet.complementOf(EnumSet.copyOf(RACES));
        if (client == FeignHttpClient.JAVA11 || client == FeignHttpClient.ASYNC_JAVA11) {
            script.remove(Behaviour.HALF_A_BODY_IN_TIME);
            script.remove(Behaviour.CHUNK_WITHOUT_SIZE);
        }
        return script;
    }

    private interface Setup {
        BaseBuilder<?, ?> of(BaseBuilder<?, ?> builder);
    }

    private static BaseBuilder<?, ?> installed(BaseBuilder<?, ?> builder) {
        return WireMockTestBase.install(
                builder,
                IdempotenceClientConfig.builder()
                        .waitBound(Duration.ofMillis(1))
                        .deadline(Duration.ofMillis(200))
                        .build());
    }

    private static Run run(BehaviourServer server, Behaviour behaviour, FeignHttpClient client, Call call, Setup setup)
            throws IOException {
        List<String> endings = new ArrayList<>();
        try (FeignHttpClient.Running running = client.start()) {
            long readTimeout = endsByTimeout(behaviour) ? 300 : 20_000;
            BaseBuilder<?, ?> builder = running.builder()
                    .retryer(new Retryer.Default(1, 5, 2))
                    .decoder((response, type) -> response.headers() + " " + STRINGS.decode(response, type))
                    .options(new Request.Options(5, TimeUnit.SECONDS, readTimeout, TimeUnit.MILLISECONDS, true));
            Orders orders = target(setup.of(builder), server.url());
            String body = "a".repeat(behaviour.requestBytes());
            for (int i = 0; i < behaviour.calls(); i++) {
                endings.add(ending(() -> call.call.apply(orders, body)));
            }
        }
        return new Run(endings, server.takeRequests());
    }

    private static Orders target(BaseBuilder<?, ?> builder, String url) {
        return builder instanceof AsyncFeign.AsyncBuilder<?> async
                ? AsyncOrders.waitingFor(async.target(new HardCodedTarget<>(AsyncOrders.class, "orders", url)))
                : ((Feign.Builder) builder).target(new HardCodedTarget<>(Orders.class, "orders", url));
    }

    private interface Ending {
        String get() throws Exception;
    }

    private static String ending(Ending call) {
        try {
            return Endings.of(String.valueOf(call.get()));
        } catch (Exception e) {
            return OKHTTP_TIMEOUT.matcher(Endings.of(e)).replaceAll("a timeout");
        }
    }
}
