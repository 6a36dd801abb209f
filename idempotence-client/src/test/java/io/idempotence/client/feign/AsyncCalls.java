package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.catchThrowable;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.Request;
import feign.Response;
import feign.Target.HardCodedTarget;
import io.idempotence.client.IdempotenceClientConfig;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A fixture for calls that return a future: their threads and their client. */
final class AsyncCalls implements AfterEachCallback {
    final ExecutorService threads = Executors.newCachedThreadPool();

    private final FeignTestBase test;

    AsyncCalls(FeignTestBase test) {
        this.test = test;
    }

    @Override
    public void afterEach(ExtensionContext context) {
        threads.shutdownNow();
    }

    /** See {@link FeignTestBase#warmUp}. */
    void warmUp() throws Exception {
        get(orders().create("warm-up"));
        test.forget();
    }

    AsyncOrders orders() {
        return orders(test.fast().build(), builder -> builder);
    }

    AsyncOrders orders(IdempotenceClientConfig config, UnaryOperator<AsyncFeign.AsyncBuilder<Object>> before) {
        AsyncFeign.AsyncBuilder<Object> builder =
                AsyncFeign.builder().client(new AsyncClient.Default<>(new Client.Default(null, null), threads));
        return IdempotentFeign.install(before.apply(builder), config)
                .target(new HardCodedTarget<>(AsyncOrders.class, "orders", test.server.url()));
    }

    static <T> T get(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    static Throwable failure(CompletionStage<?> stage) {
        Throwable thrown = catchThrowable(() -> get(stage));
        return thrown instanceof ExecutionException ? thrown.getCause() : thrown;
    }

    /** A client whose requests end when and how the test says. */
    static final class Wire implements AsyncClient<Object> {
        final List<CompletableFuture<Response>> requests = new CopyOnWriteArrayList<>();

        @Override
        public CompletableFuture<Response> execute(Request request, Request.Options options, Optional<Object> context) {
            CompletableFuture<Response> response = new CompletableFuture<>();
            requests.add(response);
            return response;
        }

        void fail(int request, IOException failure) {
            requests.get(request).completeExceptionally(failure);
        }
    }
}
