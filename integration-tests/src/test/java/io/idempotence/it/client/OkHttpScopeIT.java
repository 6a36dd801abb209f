package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.IdempotenceScope.Work;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import okhttp3.Dispatcher;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okhttp3.Response;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;

/** OkHttp without Feign inside of an {@link IdempotenceScope} or of a handler: which call gets its ID, and when it is saved. */
class OkHttpScopeIT extends OkHttpInterceptorTestBase {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");
    private static final RequestBody BODY = RequestBody.create("x", TEXT);

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void scopeHoldsOnVirtualThreads() throws Exception {
        // By reflection, as tests are compiled for 17.
        ExecutorService threads = (ExecutorService)
                Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        Method isVirtual = Thread.class.getMethod("isVirtual");
        List<Object> virtual = new CopyOnWriteArrayList<>();
        OkHttpClient client = installed(
                fast(),
                builder -> builder.dispatcher(new Dispatcher(threads)).addInterceptor(chain -> {
                    try {
                        virtual.add(isVirtual.invoke(Thread.currentThread()));
                    } catch (ReflectiveOperationException e) {
                        throw new LinkageError(e.getMessage(), e);
                    }
                    return chain.proceed(chain.request());
                }));
        requestsGet(status(503));
        IdempotenceScope.with(JOB, () -> enqueue(client.newCall(order().build())))
                .get(60, TimeUnit.SECONDS)
                .close();
        assertThat(IdempotenceScope.with(
                                JOB,
                                () -> CompletableFuture.supplyAsync(
                                        () -> {
                                            try {
                                                return ok(client, order());
                                            } catch (IOException e) {
                                                throw new UncheckedIOException(e);
                                            }
                                        },
                                        IdempotenceScope.carrying(threads)))
                        .get(60, TimeUnit.SECONDS))
                .isEqualTo(OK);
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"", "\"job-1\"");
        assertThat(virtual).hasSize(3).containsOnly(true);
    }

    /** So what is bound to the caller's thread, such as a transaction, is not there. */
    @Test
    void saverOfAnEnqueuedCallRunsInAThreadOfTheDispatcherBeforeAnythingIsSent() throws Exception {
        List<Thread> savers = new CopyOnWriteArrayList<>();
        List<Integer> sent = new CopyOnWriteArrayList<>();
        OkHttpClient client = installed();
        requestsGet(status(503));
        IdempotenceScope.saving(
                        id -> {
                            savers.add(Thread.currentThread());
                            sent.add(received().size());
                        },
                        () -> enqueue(client.newCall(order().build())))
                .get(60, TimeUnit.SECONDS)
                .close();
        assertThat(received()).hasSize(2);
        assertThat(sent).containsExactly(0);
        assertThat(savers).hasSize(1).doesNotContain(Thread.currentThread());
    }

    /** Promise P1: two calls never share an ID; the same call made again is the caller's retry. */
    @Test
    void scopeIsForOneCallThatMayBeMadeAgain() throws IOException {
        OkHttpClient client = installed();
        IdempotenceScope.with(JOB, () -> {
            ok(client, order());
            ok(client, order());
            assertThatThrownBy(() -> send(client, to(url("/other"))))
                    .isInstanceOf(IOException.class)
                    .hasCauseInstanceOf(IllegalStateException.class);
            return ok(client, order().put(BODY));
        });
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"", "");
    }

    @Test
    void callThatIsEnqueuedInsideAScopeCarriesItsId() throws Exception {
        attempt(1, status(500));
        OkHttpClient client = installed();
        CompletableFuture<Response> response =
                IdempotenceScope.with(JOB, () -> enqueue(client.newCall(order().build())));
        assertThat(response.get(60, TimeUnit.SECONDS).code()).isEqualTo(200);
        // The same thread of the dispatcher, perhaps: it keeps nothing.
        assertThat(enqueue(client.newCall(order().build()))
                        .get(60, TimeUnit.SECONDS)
                        .code())
                .isEqualTo(200);
        assertThat(ids().subList(0, 2)).containsOnly("\"job-1\"");
        assertThat(ids().subList(2, 4)).doesNotContain("\"job-1\"").doesNotContain("");
    }

    @Test
    void callOfAHandlerHasAnIdThatItsNextExecutionRepeats() throws Exception {
        OkHttpClient client = installed();
        for (int execution = 1; execution <= 2; execution++) {
            Runnable leave = InboundRequest.of("request-1").enter();
            try {
                ok(client, order());
                ok(client, order());
                enqueue(client.newCall(
                                order().post(RequestBody.create("y", TEXT)).build()))
                        .get(60, TimeUnit.SECONDS)
                        .close();
            } finally {
                leave.run();
            }
        }
        assertThat(ids().subList(0, 3)).doesNotHaveDuplicates();
        assertThat(ids().subList(3, 6)).isEqualTo(ids().subList(0, 3));
    }

    /** It saved a new one, or none. */
    @Test
    void idInEffectIsSavedWhateverGivesIt() throws IOException {
        OkHttpClient client = installed();
        List<String> saved = new ArrayList<>();
        Work<String, IOException> call = () -> ok(client, order());
        Work<String, IOException> saving = () -> IdempotenceScope.saving(id -> saved.add("\"" + id + "\""), call);
        IdempotenceScope.with(JOB, saving);
        IdempotenceScope.resume(JOB, Instant.now(), saving);
        IdempotenceScope.saving(
                id -> saved.add(id.value()), () -> ok(client, order().header("Idempotency-Key", "mine")));
        assertThat(saved).containsExactly("\"job-1\"", "\"job-1\"", "mine").isEqualTo(ids());
    }

    @Test
    void resumedCallTakesPartWithItsIdAsAHeaderAndIsNotSentWithAnotherOne() throws IOException {
        OkHttpClient client = installed();
        Instant sent = Instant.now().minusSeconds(3600);
        IdempotenceScope.resume(JOB, sent, () -> ok(client, order().header("Idempotency-Key", "job-1")));
        assertThat(ids()).containsExactly("job-1");
        Instant dayAgo = sent.minus(Duration.ofDays(1));
        assertThatThrownBy(() -> IdempotenceScope.resume(
                        JOB, dayAgo, () -> send(client, order().header("Idempotency-Key", "job-1"))))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("server-retention");
        assertThatThrownBy(() -> IdempotenceScope.resume(
                        JOB, sent, () -> send(client, order().header("Idempotency-Key", "mine"))))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("another ID than the IdempotenceScope.resume");
        assertThat(received()).hasSize(1);
    }

    /** What a call does on its way, such as fetching a token, is outside of its scope. */
    @Test
    void callThatAnInterceptorMakesIsOutsideOfTheScope() throws IOException {
        OkHttpClient tokens = installed();
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    ok(tokens, to(url("/token")));
                    return chain.proceed(chain.request());
                }));
        IdempotenceScope.with(JOB, () -> ok(client, order()));
        assertThat(received()).extracting(request -> request.getUrl()).containsExactly("/token", "/orders");
        assertThat(ids().get(0)).isNotEqualTo("\"job-1\"");
        assertThat(ids().get(1)).isEqualTo("\"job-1\"");
    }
}
