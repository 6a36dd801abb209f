package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.github.tomakehurst.wiremock.http.Fault;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import okhttp3.Call;
import okhttp3.HttpUrl;
import okhttp3.Interceptor;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okio.BufferedSink;
import okio.Okio;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One call of OkHttp has one ID, however often an interceptor in front of ours proceeds (promise P1). */
class OkHttpProceedTwiceIT extends OkHttpInterceptorTestBase {

    private OkHttpClient behind(Interceptor interceptor) {
        return built(IdempotentOkHttp.install(
                plain().addInterceptor(interceptor), fast().maxAttempts(1).build(), "orders"));
    }

    private OkHttpClient proceedingTwice() {
        return behind(chain -> {
            try {
                chain.proceed(chain.request()).close();
            } catch (IOException e) {
                // Again.
            }
            return chain.proceed(chain.request());
        });
    }

    private static RequestBody stream(String text) {
        InputStream in = new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
        return body(sink -> sink.writeAll(Okio.source(in)));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callThatIsSentAgainInFrontOfOursKeepsItsId(boolean enqueued) throws Exception {
        requestsGet(status(503));
        OkHttpClient client = proceedingTwice();
        if (enqueued) {
            enqueue(client.newCall(order().build())).get(60, TimeUnit.SECONDS).close();
        } else {
            ok(client, order());
        }
        assertThat(received()).hasSize(2);
        assertOneId();
    }

    @Test
    void callThatIsMadeAnewHasAnIdOfItsOwn() throws IOException {
        OkHttpClient client = proceedingTwice();
        Call call = client.newCall(order().build());
        call.execute().close();
        call.clone().execute().close();
        assertThat(ids()).hasSize(4);
        assertThat(ids().get(0)).isEqualTo(ids().get(1));
        assertThat(ids().get(2)).isEqualTo(ids().get(3)).isNotEqualTo(ids().get(0));
    }

    /** A retry that adds a token, counts in the query, or goes to the next instance is the same operation. */
    @Test
    void headersQueryAndHostMakeNoOtherCall() throws IOException {
        OkHttpClient client = behind(chain -> {
            Request request = chain.request();
            chain.proceed(request).close();
            HttpUrl next = request.url()
                    .newBuilder()
                    .host("localhost")
                    .addQueryParameter("retry", "1")
                    .build();
            return chain.proceed(request.newBuilder()
                    .url(next)
                    .header("Authorization", "token")
                    .build());
        });
        ok(client, order());
        assertThat(received()).hasSize(2);
        assertOneId();
    }

    /** The second host was refused as another call, and with that the doubt of the first one was gone. */
    @Test
    void callInAScopeThatGoesToTheNextHostKeepsTheIdAndTheDoubt() throws IOException {
        attemptsUpTo(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        OkHttpClient client = behind(chain -> {
            Request request = chain.request();
            assertThatThrownBy(() -> chain.proceed(request)).isInstanceOf(OkHttpOutcomeUnknownException.class);
            provider.resetMappings();
            alwaysGet(status(503));
            return chain.proceed(request.newBuilder()
                    .url(request.url().newBuilder().host("localhost").build())
                    .build());
        });
        assertThatThrownBy(() -> IdempotenceScope.with(IdempotenceId.of("job-1"), () -> send(client, order())))
                .isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"");
    }

    @Test
    void tokenThatIsFetchedThroughTheChainIsACallOfItsOwn() throws IOException {
        OkHttpClient client = behind(chain -> {
            chain.proceed(to(url("/token")).build()).close();
            return chain.proceed(chain.request());
        });
        ok(client, order());
        assertThat(ids()).hasSize(2).doesNotHaveDuplicates().doesNotContain("");
    }

    /** Nothing left the second time, and that does not undo the first. */
    @Test
    void doubtOfTheFirstSendingIsNotForgotten() throws IOException {
        HttpUrl nobody = HttpUrl.get(nobody());
        alwaysGet(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        OkHttpClient client = behind(chain -> {
            Request request = chain.request();
            assertThatThrownBy(() -> chain.proceed(request)).isInstanceOf(OkHttpOutcomeUnknownException.class);
            return chain.proceed(request.newBuilder()
                    .url(request.url().newBuilder().port(nobody.port()).build())
                    .build());
        });
        for (String given : List.of("", "mine")) {
            Request.Builder request = given.isEmpty() ? order() : order().header("Idempotency-Key", given);
            assertThatThrownBy(() -> send(client, request)).isInstanceOf(OkHttpOutcomeUnknownException.class);
        }
    }

    @Test
    void callOfAHandlerKeepsItsIdAndThoseAfterItToo() throws IOException {
        OkHttpClient twice = proceedingTwice();
        OkHttpClient once = installed();
        for (OkHttpClient client : List.of(twice, once)) {
            Runnable leave = InboundRequest.of("request-1").enter();
            try {
                ok(client, order());
                ok(client, order());
            } finally {
                leave.run();
            }
        }
        List<String> ids = ids();
        assertThat(ids).hasSize(6);
        assertThat(ids.subList(0, 4)).containsExactly(ids.get(4), ids.get(4), ids.get(5), ids.get(5));
    }

    @Test
    void streamIsRepeatedAsItWasCaptured() throws IOException {
        ok(proceedingTwice(), order().post(stream("written once")));
        assertThat(bodies()).containsExactly("written once", "written once");
        assertOneId();
    }

    /** It was read before, and an empty order would be another one. */
    @Test
    void streamThatWasNotCapturedIsNotSentEmpty() throws IOException {
        alwaysGet(status(503));
        OkHttpClient client = proceedingTwice();
        assertThat(status(client, order().post(stream("x".repeat(1024 * 1024 + 1)))))
                .isEqualTo(503);
        assertThat(received()).extracting(LoggedRequest::getBody).hasSize(1);
    }

    /** What a call remembers must not keep it alive: a body may refer to its call, to report its progress. */
    @ParameterizedTest
    @ValueSource(ints = {0, 2 * 1024 * 1024})
    void callsThatEndedAreForgotten(int length) throws IOException {
        OkHttpClient client = proceedingTwice();
        WeakReference<Call> call = new WeakReference<>(callWhoseBodyRefersToIt(client, length));
        await().until(() -> {
            System.gc();
            return call.get() == null;
        });
    }

    private static Call callWhoseBodyRefersToIt(OkHttpClient client, int length) throws IOException {
        AtomicReference<Call> self = new AtomicReference<>();
        Call call = client.newCall(order().post(new RequestBody() {
                    @Override
                    public MediaType contentType() {
                        return TEXT;
                    }

                    @Override
                    public long contentLength() {
                        return length == 0 ? -1 : length;
                    }

                    @Override
                    public void writeTo(BufferedSink sink) throws IOException {
                        sink.writeUtf8(self.get().isCanceled() ? "" : "x".repeat(length));
                    }
                })
                .build());
        self.set(call);
        call.execute().close();
        return call;
    }
}
