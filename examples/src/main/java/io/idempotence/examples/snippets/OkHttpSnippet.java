package io.idempotence.examples.snippets;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClient;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OutcomeUnknownException;
import java.io.IOException;
import java.time.Instant;
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
    private final Map<String, Sent> toAskAgain = new ConcurrentHashMap<>();

    // tag::snippet[]
    private final OkHttpClient client =
            IdempotentOkHttp.install(new OkHttpClient.Builder()).build(); // the one line

    void pay(String order) throws IOException {
        try (Response response = send(order)) { // tried again if need be, always under one ID
            paid(order, response.body().string());
        } catch (OutcomeUnknownException e) { // an IOException: keep the ID and its time
            toAskAgain.put(order, new Sent(e.id(), e.firstSentAt()));
        }
    }

    void askAgain(String order, Sent sent) throws IOException { // minutes later, perhaps after a restart
        // The first answer, or the first payment.
        try (Response response = IdempotenceClient.resume(sent.id(), sent.at(), () -> send(order))) {
            paid(order, response.body().string());
        }
    }

    private Response send(String order) throws IOException {
        Request request = new Request.Builder()
                .url("https://payments.example/payments")
                .post(RequestBody.create(order, JSON))
                .build();
        return client.newCall(request).execute();
    }
    // end::snippet[]

    private record Sent(IdempotenceId id, Instant at) {}

    private static void paid(String order, String payment) {
        System.out.println("order " + order + " is paid by payment " + payment);
    }
}
