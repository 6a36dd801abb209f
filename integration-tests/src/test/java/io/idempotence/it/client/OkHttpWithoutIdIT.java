package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.it.behaviour.Behaviour;
import io.idempotence.it.behaviour.BehaviourServer;
import io.idempotence.it.behaviour.Endings;
import io.idempotence.it.wire.SideBySide;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import okhttp3.Authenticator;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.Cookie;
import okhttp3.CookieJar;
import okhttp3.Credentials;
import okhttp3.HttpUrl;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.BufferedSink;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;

/** Calls that carry no ID. What the caller gets and what goes over the wire is the same with and without the client half. */
class OkHttpWithoutIdIT {
    private static final int RUNS_ENDED_BY_TIMEOUT = 10;

    /** What the caller got, and what the server received. */
    private record Run(List<String> endings, List<String> requests) {}

    private record Case(Behaviour behaviour, String method, Sending sending) {
        @Override
        public String toString() {
            return behaviour + ", " + method;
        }
    }

    @TestFactory
    Stream<DynamicTest> callWithoutAnIdIsAsWithoutTheClientHalf() {
        return SideBySide.test(executed("GET", "POST"), OkHttpWithoutIdIT::assertSame);
    }

    @TestFactory
    @Tag("all") // GET has no body, and POST has one
    Stream<DynamicTest> callWithoutAnIdIsAsWithoutTheClientHalfWithOtherMethods() {
        return SideBySide.test(executed("PUT", "DELETE"), OkHttpWithoutIdIT::assertSame);
    }

    private static Stream<Case> executed(String... methods) {
        return Stream.of(Behaviour.values())
                .flatMap(behaviour ->
                        Stream.of(methods).map(method -> new Case(behaviour, method, OkHttpWithoutIdIT::execute)));
    }

    @TestFactory
    Stream<DynamicTest> enqueuedCallWithoutAnIdIsAsWithoutTheClientHalf() {
        return SideBySide.test(
                Stream.of(Behaviour.values()).map(behaviour -> new Case(behaviour, "POST", OkHttpWithoutIdIT::enqueue)),
                OkHttpWithoutIdIT::assertSame);
    }

    /**
     * On a busy machine a read timeout may end a call before its request has arrived, with or without us. Then both run again until one has
     * happened that happens with the other, too.
     */
    private static void assertSame(Case one) {
        int runs = one.behaviour.isLate() ? RUNS_ENDED_BY_TIMEOUT : 1;
        Set<Run> without = new LinkedHashSet<>();
        Set<Run> with = new LinkedHashSet<>();
        try (BehaviourServer server = BehaviourServer.start(one.behaviour)) {
            for (int i = 0; i < runs && Collections.disjoint(with, without); i++) {
                without.add(run(server, one.behaviour, plain(one.behaviour), one.method, one.sending));
                with.add(run(server, one.behaviour, installed(one.behaviour), one.method, one.sending));
            }
        }
        if (Collections.disjoint(with, without)) {
            assertThat(with).isEqualTo(without);
        }
    }

    private static OkHttpClient.Builder plain(Behaviour behaviour) {
        return new OkHttpClient.Builder()
                .readTimeout(behaviour.isLate() ? Duration.ofMillis(300) : Duration.ofSeconds(20))
                .cookieJar(new Cookies())
                .authenticator(LOGIN);
    }

    /** No call of it carries an ID: POST neither, as settings can say. */
    private static OkHttpClient.Builder installed(Behaviour behaviour) {
        return IdempotentOkHttp.install(
                plain(behaviour),
                IdempotenceClientConfig.builder()
                        .methods("PATCH")
                        .waitBound(Duration.ofMillis(1))
                        .build());
    }

    private static Run run(
            BehaviourServer server, Behaviour behaviour, OkHttpClient.Builder builder, String method, Sending sending) {
        OkHttpClient client = builder.build();
        List<String> endings = new ArrayList<>();
        try {
            for (int call = 0; call < behaviour.calls(); call++) {
                RequestBody body = method.equals("GET") ? null : new Body(behaviour.requestBytes());
                endings.add(sending.ending(client.newCall(new Request.Builder()
                        .url(server.url())
                        .method(method, body)
                        .build())));
            }
        } finally {
            client.dispatcher().executorService().shutdown();
            client.connectionPool().evictAll();
        }
        return new Run(endings, server.takeRequests());
    }

    private interface Sending {
        String ending(Call call);
    }

    private static String execute(Call call) {
        try (Response response = call.execute()) {
            return ending(response);
        } catch (IOException | RuntimeException e) {
            return Endings.of(e);
        }
    }

    private static String enqueue(Call call) {
        CompletableFuture<String> ending = new CompletableFuture<>();
        call.enqueue(new Callback() {
            @Override
            public void onFailure(Call failed, IOException e) {
                ending.complete(Endings.of(e));
            }

            @Override
            public void onResponse(Call ended, Response response) {
                try (response) {
                    ending.complete(ending(response));
                }
            }
        });
        try {
            return ending.get(60, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new AssertionError("the call does not end", e);
        }
    }

    private static String ending(Response response) {
        String body;
        try {
            body = Endings.of(response.body().string());
        } catch (IOException e) {
            body = Endings.of(e);
        }
        int before = 0;
        for (Response prior = response.priorResponse(); prior != null; prior = prior.priorResponse()) {
            before++;
        }
        return response + "\n" + response.headers() + body + "\n" + before + " responses before";
    }

    /** A body of unknown length that is written anew each time. */
    private static final class Body extends RequestBody {
        private final int length;

        Body(int length) {
            this.length = length;
        }

        @Override
        public MediaType contentType() {
            return MediaType.get("text/plain");
        }

        @Override
        public void writeTo(BufferedSink sink) throws IOException {
            for (int i = 0; i < length; i++) {
                sink.writeByte('a' + i % 26);
            }
        }
    }

    private static final Authenticator LOGIN =
            (route, response) -> response.request().header("Authorization") == null
                    ? response.request()
                            .newBuilder()
                            .header("Authorization", Credentials.basic("me", "secret"))
                            .build()
                    : null;

    private static final class Cookies implements CookieJar {
        private final ConcurrentHashMap<String, Cookie> kept = new ConcurrentHashMap<>();

        @Override
        public void saveFromResponse(HttpUrl url, List<Cookie> cookies) {
            cookies.forEach(cookie -> kept.put(cookie.name(), cookie));
        }

        @Override
        public List<Cookie> loadForRequest(HttpUrl url) {
            return kept.values().stream().filter(cookie -> cookie.matches(url)).toList();
        }
    }
}
