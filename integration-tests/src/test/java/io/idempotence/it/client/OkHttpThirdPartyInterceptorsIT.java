package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.FeignException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import okhttp3.CacheControl;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The interceptor beside interceptors, authenticators and event listeners of the application. */
class OkHttpThirdPartyInterceptorsIT extends OkHttpInterceptorTestBase {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");

    @Test
    void interceptorsBeforeSeeTheCallAndThoseAfterSeeEachAttempt() throws IOException {
        attemptsUpTo(2, status(500));
        List<String> before = new ArrayList<>();
        List<String> after = new ArrayList<>();
        OkHttpClient client = built(IdempotentOkHttp.install(
                        plain().addInterceptor(chain -> {
                            before.add(String.valueOf(chain.request().header("Idempotency-Attempt")));
                            return chain.proceed(chain.request());
                        }),
                        fast().build())
                .addInterceptor(chain -> {
                    after.add(chain.request().header("Idempotency-Attempt"));
                    return chain.proceed(chain.request());
                }));
        ok(client, order());
        assertThat(before).containsExactly("null");
        assertThat(after).containsExactly("1", "2", "3");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "\"another\""})
    void interceptorThatSendsAgainUnderAnotherIdOrNoneFailsAndThatRequestIsNotSent(String line) {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    chain.proceed(chain.request()).close();
                    return chain.proceed(withLine(order(), line).build());
                }));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("changed the Idempotency-Key");
        assertThat(ids()).hasSize(1).doesNotContain("");
    }

    @Test
    void authenticatorThatMakesARequestWithoutTheIdFailsAndThatRequestIsNotSent() {
        alwaysGet(status(401));
        OkHttpClient client = installed(fast(), builder -> builder.authenticator((route, response) -> order().build()));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("changed the Idempotency-Key");
        assertThat(ids()).hasSize(1).doesNotContain("");
    }

    private static Request.Builder withLine(Request.Builder request, String line) {
        return line.isEmpty() ? request : request.header("Idempotency-Key", line);
    }

    /** As interceptors for times without a network do. OkHttp responds 504 by itself, and an earlier call stays as unknown as it was. */
    @Test
    void requestForTheCacheOnlyIsNotSentAndLeavesNoDoubt() throws IOException {
        Request.Builder cached = order().cacheControl(CacheControl.FORCE_CACHE);
        assertThat(status(installed(), cached)).isEqualTo(504);
        assertEnd(FAILED, 3);
        for (IdempotenceClientConfigBuilder config : List.of(fast(), fast().statuses(503))) {
            assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> send(installed(config), cached)))
                    .isInstanceOf(OkHttpOutcomeUnknownException.class);
        }
        assertThat(received()).isEmpty();
    }

    @Test
    void requestOfFeignForTheCacheOnlyIsNotSentAndLeavesNoDoubt() {
        Orders orders = feignOver(built(plain().addInterceptor(chain -> chain.proceed(chain.request()
                .newBuilder()
                .cacheControl(CacheControl.FORCE_CACHE)
                .build()))));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.GatewayTimeout.class);
        assertEnd(FAILED, 3);
        assertThat(received()).isEmpty();
    }

    /** As interceptors do that turn every trouble into one error. */
    @ParameterizedTest
    @CsvSource({
        "504, 503, , ",
        "504, 429, , ",
        "500, 429, , ",
        "500, 401, , ",
        "200, 429, , ",
        "303, 401, , ",
        "422, 401, Idempotent-Replayed, true",
        "500, 401, Idempotent-Replayed, true",
        "503, 429, Idempotent-Replayed, true",
        "409, 429, Idempotency-Refusal, in-progress",
        "409, 401, Idempotency-Refusal, outcome-unknown",
        "409, 401, Idempotency-Refusal, result-unavailable"
    })
    void responseThatAnInterceptorReplacesLeavesItsDoubt(int status, int replacement, String header, String value) {
        alwaysGet(header == null ? status(status) : status(status).withHeader(header, value));
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> chain.proceed(chain.request())
                        .newBuilder()
                        .code(replacement)
                        .removeHeader("Idempotent-Replayed")
                        .removeHeader("Idempotency-Refusal")
                        .build()));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
    }

    /** It shows that nothing was executed. */
    @ParameterizedTest
    @CsvSource({"503, storage-unavailable", "503, overloaded", "400, key-invalid"})
    void refusalThatAnInterceptorReplacesLeavesNoDoubt(int status, String refusal) throws IOException {
        alwaysGet(refusal(refusal, status));
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> chain.proceed(chain.request())
                        .newBuilder()
                        .code(401)
                        .removeHeader("Idempotency-Refusal")
                        .build()));
        assertThat(status(client, order())).isEqualTo(401);
    }

    /** It shows as much. */
    @Test
    void failureOfTheHandlerThatAnInterceptorReplacesByAnotherIsThatOne() throws IOException {
        alwaysGet(status(500));
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain ->
                        chain.proceed(chain.request()).newBuilder().code(503).build()));
        assertThat(status(client, order())).isEqualTo(503);
    }

    /** As an interceptor does that asks until a result is there. */
    @ParameterizedTest
    @ValueSource(ints = {200, 303})
    void executedCallThatAnInterceptorSendsAgainStaysInDoubt(int status) {
        alwaysGet(status(status));
        OkHttpClient client = installed(
                fast().maxAttempts(1),
                builder -> builder.addInterceptor(chain -> {
                    chain.proceed(chain.request()).close();
                    provider.resetMappings();
                    alwaysGet(status(503));
                    return chain.proceed(chain.request());
                }));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(received()).hasSize(2);
    }

    @Test
    void interceptorThatChangesTheIdFailsAndNothingIsSent() {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> chain.proceed(chain.request()
                        .newBuilder()
                        .header("Idempotency-Key", "another")
                        .build())));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("an authenticator or a target changed the Idempotency-Key");
        assertThat(received()).isEmpty();
        assertThat(events.get(0).attempts()).isEqualTo(1);
    }

    @Test
    void eventListenerThatWasThereIsKept() throws IOException {
        ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
        OkHttpClient client = built(IdempotentOkHttp.install(
                plain().eventListener(new EventListener() {
                    @Override
                    public void callStart(Call call) {
                        heard.add("start");
                    }
                }),
                fast().build()));
        ok(client, order());
        assertThat(heard).containsExactly("start");
    }

    /** Asked for each call: a client derived from one that was put together rightly may have another listener. */
    @Test
    void eventListenerThatReplacedOursIsMentionedOnceAndAScopeStillHoldsInItsThread() throws Exception {
        OkHttpClient client = installed();
        OkHttpClient derived = built(client.newBuilder().eventListener(EventListener.NONE));
        assertThat(warnings(() -> ok(client, order()))).isEmpty();
        List<String> warnings = warnings(() -> {
            assertThat(IdempotenceScope.with(JOB, () -> ok(derived, order()))).isEqualTo(OK);
            IdempotenceScope.with(JOB, () -> enqueue(derived.newCall(order().build())))
                    .get(60, TimeUnit.SECONDS)
                    .close();
        });
        assertThat(ids()).hasSize(3).doesNotHaveDuplicates().element(1).isEqualTo("\"job-1\"");
        assertThat(warnings)
                .singleElement()
                .asString()
                .contains("will NOT carry its ID")
                .contains("call IdempotentOkHttp.install(builder) last");
    }

    @Test
    void interceptorBeforeOursThatSendsTwiceKeepsTheScope() throws Exception {
        OkHttpClient client = built(IdempotentOkHttp.install(
                plain().addInterceptor(chain -> {
                    chain.proceed(chain.request()).close();
                    return chain.proceed(chain.request());
                }),
                fast().build()));
        List<String> warnings =
                warnings(() -> IdempotenceScope.with(JOB, () -> enqueue(client.newCall(order().build())))
                        .get(60, TimeUnit.SECONDS)
                        .close());
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"");
        assertThat(warnings).isEmpty();
    }

    @Test
    void installingTwiceIsAMistake() {
        OkHttpClient.Builder builder = IdempotentOkHttp.install(plain(), fast().build());
        IdempotenceClientConfig config = fast().build();
        assertThatThrownBy(() -> IdempotentOkHttp.install(builder, config)).isInstanceOf(IllegalStateException.class);
        OkHttpClient.Builder derived = built(builder).newBuilder();
        assertThatThrownBy(() -> IdempotentOkHttp.install(derived, config)).isInstanceOf(IllegalStateException.class);
    }
}
