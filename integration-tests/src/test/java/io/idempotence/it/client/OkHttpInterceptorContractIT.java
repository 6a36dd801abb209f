package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static org.awaitility.Awaitility.await;

import feign.BaseBuilder;
import feign.Feign;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.it.client.ClientUnderTest.End;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import okhttp3.Call;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import org.junit.jupiter.api.AfterEach;

/** OkHttp without Feign. */
class OkHttpInterceptorContractIT extends ClientContract {
    private final List<OkHttpClient> clients = new ArrayList<>();

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }

    @Override
    ClientUnderTest client(IdempotenceClientConfig config, String url, Duration connect, Duration read) {
        OkHttpClient client = IdempotentOkHttp.install(
                        new OkHttpClient.Builder().connectTimeout(connect).readTimeout(read), config, "orders")
                .build();
        clients.add(client);
        return body -> end(client.newCall(new Request.Builder()
                .url(url + "/orders")
                .post(RequestBody.create(body, OkHttpInterceptorTestBase.TEXT))
                .build()));
    }

    private static End end(Call call) {
        try (Response response = call.execute()) {
            return new End(response.code(), response.body().string(), null);
        } catch (IOException e) {
            return End.thrown(e);
        }
    }

    @Override
    Class<? extends Throwable> failureToSend() {
        return IOException.class;
    }

    @Override
    Class<?> logger() {
        return IdempotentOkHttp.class;
    }

    @Override
    Result endOfAStoredError() {
        return REPLAYED;
    }

    @Override
    Follows follows() {
        return Follows.BY_ITSELF;
    }

    @Override
    boolean readsAbsurdSecondsBeside(int status) {
        return status != 408 && status != 503;
    }

    /** A response that is not closed holds its connection. */
    @AfterEach
    void nothingIsHeld() {
        for (OkHttpClient client : clients) {
            await().until(() -> client.connectionPool().idleConnectionCount()
                    == client.connectionPool().connectionCount());
            client.dispatcher().executorService().shutdown();
            client.connectionPool().evictAll();
        }
    }
}
