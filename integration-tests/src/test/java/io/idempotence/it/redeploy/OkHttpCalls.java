package io.idempotence.it.redeploy;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** Calls of the web application over OkHttp, which is closed as its documentation asks for. */
final class OkHttpCalls implements WebApplication.Calls {
    private final OkHttpClient client = IdempotentOkHttp.install(
                    new OkHttpClient.Builder(),
                    IdempotenceClientConfig.builder()
                            .deadline(Duration.ofMinutes(2))
                            .build())
            .build();
    private final String url;

    OkHttpCalls(String url) {
        this.url = url;
    }

    @Override
    public String make() throws Exception {
        try (Response executed = order().execute();
                Response enqueued = enqueued(order()).get(60, TimeUnit.SECONDS)) {
            return executed.body().string() + "," + enqueued.body().string();
        }
    }

    private Call order() {
        return client.newCall(new Request.Builder()
                .url(url + "/orders")
                .post(RequestBody.create("{}", MediaType.get("application/json")))
                .build());
    }

    private static CompletableFuture<Response> enqueued(Call call) {
        CompletableFuture<Response> response = new CompletableFuture<>();
        call.enqueue(new Callback() {
            @Override
            public void onFailure(Call failed, IOException e) {
                response.completeExceptionally(e);
            }

            @Override
            public void onResponse(Call ended, Response received) {
                response.complete(received);
            }
        });
        return response;
    }

    @Override
    public void close() {
        client.dispatcher().executorService().shutdown();
        client.connectionPool().evictAll();
    }
}
