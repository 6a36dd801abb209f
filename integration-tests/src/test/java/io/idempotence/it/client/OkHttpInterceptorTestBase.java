package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.BufferedSink;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.slf4j.LoggerFactory;

/** The base of tests of OkHttp without Feign. */
abstract class OkHttpInterceptorTestBase extends WireMockTestBase {
    static final MediaType TEXT = MediaType.get("text/plain");

    private final List<OkHttpClient> clients = new ArrayList<>();

    @Override
    final BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }

    @AfterEach
    final void closeClients() {
        for (OkHttpClient client : clients) {
            client.dispatcher().cancelAll();
            client.dispatcher().executorService().shutdown();
            client.connectionPool().evictAll();
        }
    }

    /** The first call loads classes, which may take longer than a short deadline. */
    final void warmUp() throws IOException {
        assertThat(ok(installed(), order())).isEqualTo(OK);
        forget();
    }

    final OkHttpClient installed() {
        return installed(fast());
    }

    final OkHttpClient installed(IdempotenceClientConfigBuilder config) {
        return installed(config, builder -> builder);
    }

    final OkHttpClient installed(IdempotenceClientConfigBuilder config, UnaryOperator<OkHttpClient.Builder> after) {
        return built(after.apply(IdempotentOkHttp.install(plain(), config.build(), "orders")));
    }

    final OkHttpClient built(OkHttpClient.Builder builder) {
        OkHttpClient client = builder.build();
        clients.add(client);
        return client;
    }

    /** Feign, with the client half, sending through {@code under}. */
    final Orders feignOver(OkHttpClient under) {
        return feignOver(new feign.okhttp.OkHttpClient(under));
    }

    final Orders feignOver(Client under) {
        return target(install(feign(under), fast().build()));
    }

    /** Feign whose requests {@code under} sends. */
    BaseBuilder<?, ?> feign(Client under) {
        return Feign.builder().client(under);
    }

    static OkHttpClient.Builder plain() {
        return new OkHttpClient.Builder().readTimeout(Duration.ofSeconds(20));
    }

    static String url(String path) {
        return "http://127.0.0.1:" + provider.port() + path;
    }

    static Request.Builder order() {
        return to(url("/orders"));
    }

    static Request.Builder to(String url) {
        return new Request.Builder().url(url).post(RequestBody.create("x", TEXT));
    }

    /** A function that writes a request body. */
    interface Writing {
        void to(BufferedSink sink) throws IOException;
    }

    static RequestBody body(Writing writing) {
        return body(-1, writing);
    }

    /** @param length negative if it is not known */
    static RequestBody body(long length, Writing writing) {
        return new RequestBody() {
            @Override
            public MediaType contentType() {
                return TEXT;
            }

            @Override
            public long contentLength() {
                return length;
            }

            @Override
            public void writeTo(BufferedSink sink) throws IOException {
                writing.to(sink);
            }
        };
    }

    static Response send(OkHttpClient client, Request.Builder request) throws IOException {
        return client.newCall(request.build()).execute();
    }

    /** The text of a 200. */
    static String ok(OkHttpClient client, Request.Builder request) throws IOException {
        try (Response response = send(client, request)) {
            assertThat(response.code()).isEqualTo(200);
            return response.body().string();
        }
    }

    static int status(OkHttpClient client, Request.Builder request) throws IOException {
        try (Response response = send(client, request)) {
            return response.code();
        }
    }

    static CompletableFuture<Response> enqueue(Call call) {
        CompletableFuture<Response> result = new CompletableFuture<>();
        call.enqueue(new Callback() {
            @Override
            public void onFailure(Call failed, IOException e) {
                result.completeExceptionally(e);
            }

            @Override
            public void onResponse(Call ended, Response response) {
                result.complete(response);
            }
        });
        return result;
    }

    /** What the client half says while {@code work} runs. */
    static List<String> warnings(ThrowingCallable work) {
        return logged(IdempotentOkHttp.class.getName(), Level.WARN, work).stream()
                .map(ILoggingEvent::getFormattedMessage)
                .toList();
    }

    /** The messages that a logger gets while {@code work} runs, and no other. */
    static List<ILoggingEvent> logged(String name, Level level, ThrowingCallable work) {
        Logger logger = (Logger) LoggerFactory.getLogger(name);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.addAppender(log);
        logger.setLevel(level);
        logger.setAdditive(false);
        try {
            assertThatNoException().isThrownBy(work);
        } finally {
            logger.setAdditive(true);
            logger.setLevel(null);
            logger.detachAppender(log);
        }
        return List.copyOf(log.list);
    }
}
