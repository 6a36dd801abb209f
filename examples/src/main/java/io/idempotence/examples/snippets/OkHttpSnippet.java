package io.idempotence.examples.snippets;

import io.idempotence.IdempotenceId;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OutcomeUnknownException;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** The consumer's side of the README, without Feign. */
public final class OkHttpSnippet {
    private static final MediaType JSON = MediaType.get("application/json");
    private final Map<String, IdempotenceId> toAskAgain = new ConcurrentHashMap<>();

    // tag::snippet[]
    private final OkHttpClient client =
            IdempotentOkHttp.install(new OkHttpClient.Builder()).build(); // the one line

    void pay(String order) throws IOException {
        Request request = new Request.Builder()
                .url("https://payments.example/payments")
                .post(RequestBody.create(order, JSON))
                .build();
        try (Response response = client.newCall(request).execute()) { // tried again if need be, always under one ID
            paid(order, response.body().string());
        } catch (OutcomeUnknownException e) { // an IOException: the network won this time
            toAskAgain.put(order, e.id());
        }
    }
    // end::snippet[]

    private static void paid(String order, String payment) {
        System.out.println("order " + order + " is paid by payment " + payment);
    }
}
