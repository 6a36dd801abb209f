package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static com.github.tomakehurst.wiremock.client.WireMock.postRequestedFor;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static org.assertj.core.api.Assertions.assertThat;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Feign;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import okhttp3.EventListener;
import okhttp3.Interceptor;
import okhttp3.OkHttpClient;
import okhttp3.Response;
import okhttp3.internal.connection.RealCall;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The timeouts of Feign's requests over OkHttp. */
class FeignOkHttpTimeoutsIT extends WireMockTestBase {
    private final Set<OkHttpClient> clients =
            Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));
    private final List<Timeouts> seen = new CopyOnWriteArrayList<>();

    private record Timeouts(int connect, int read, int write) {
        static Timeouts of(Interceptor.Chain chain) {
            return new Timeouts(chain.connectTimeoutMillis(), chain.readTimeoutMillis(), chain.writeTimeoutMillis());
        }
    }

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }

    private Orders orders(boolean async, OkHttpClient.Builder http, Duration deadline) {
        feign.okhttp.OkHttpClient client = new feign.okhttp.OkHttpClient(http.build());
        BaseBuilder<?, ?> builder =
                async ? AsyncFeign.builder().client(client) : Feign.builder().client(client);
        return target(install(
                builder.options(readTimeout(120_000)), fast().deadline(deadline).build()));
    }

    private static Response throughAClone(Interceptor.Chain chain) throws IOException {
        try {
            return CompletableFuture.supplyAsync(() -> {
                        try {
                            return chain.call().clone().execute();
                        } catch (IOException e) {
                            throw new CompletionException(e);
                        }
                    })
                    .join();
        } catch (CompletionException e) {
            throw new IOException(e);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void requestsWithDifferentTimeoutsShareOneCopyOfTheHttpClient(boolean async) {
        Orders orders = orders(
                async,
                okHttp.newBuilder().eventListenerFactory(call -> {
                    clients.add(((RealCall) call).getClient());
                    return EventListener.NONE;
                }),
                Duration.ofSeconds(60));
        for (int i = 0; i < 3; i++) {
            assertThat(orders.create("x")).isEqualTo(OK);
        }
        assertThat(clients).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void interceptorsSeeTimeoutsThatAreCutToTheDeadlineEvenThoseOfAClonedCall(boolean async) {
        List<okhttp3.Call> originals = new ArrayList<>();
        Orders orders = orders(
                async,
                okHttp.newBuilder().writeTimeout(7, TimeUnit.SECONDS).addInterceptor(chain -> {
                    seen.add(Timeouts.of(chain));
                    if (originals.isEmpty()) {
                        originals.add(chain.call());
                        return throughAClone(chain);
                    }
                    return chain.proceed(chain.request());
                }),
                Duration.ofSeconds(60));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertThat(seen).hasSize(2).allSatisfy(timeouts -> {
            assertThat(timeouts.connect()).isEqualTo(5_000);
            assertThat(timeouts.read()).isBetween(5_001, 60_000);
            assertThat(timeouts.write()).isEqualTo(7_000);
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void requestsWithoutAnIdHaveTheTimeoutsAndRedirectsOfFeignsOptions(boolean async) {
        provider.stubFor(post("/orders").willReturn(aResponse().withStatus(307).withHeader("Location", "/moved")));
        Orders orders = orders(
                async,
                okHttp.newBuilder().addInterceptor(chain -> {
                    seen.add(Timeouts.of(chain));
                    return chain.proceed(chain.request());
                }),
                Duration.ofSeconds(60));
        assertThat(orders.unprotected("x")).isEqualTo(OK);
        assertThat(seen).extracting(Timeouts::read).containsOnly(120_000);
        provider.verify(postRequestedFor(urlEqualTo("/moved")));
    }
}
