package io.idempotence.examples.snippets;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import java.io.IOException;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** The consumer's side of the README, without Feign. */
public final class OkHttpSnippet {
    private static final MediaType JSON = MediaType.get("application/json");
    private final Map<String, Sent> open = new ConcurrentHashMap<>();
    private final Map<String, String> ends = new ConcurrentHashMap<>();
    private final String url;

    OkHttpSnippet(String url) {
        this.url = url;
    }

    // tag::snippet[]
    private final OkHttpClient client =
            IdempotentOkHttp.install(new OkHttpClient.Builder()).build(); // the one line

    /** After an IOException, whichever, call it again minutes later, perhaps after a restart: it asks under the same ID. */
    void pay(String order) throws IOException {
        Sent sent = open.get(order); // in the database, with the order
        try (Response response = sent == null
                ? IdempotenceScope.saving(id -> open.put(order, new Sent(id, Instant.now())), () -> send(order))
                : IdempotenceScope.resume(sent.id(), sent.at(), () -> send(order))) {
            String body = response.body().string(); // may be cut
            if (response.isSuccessful()) {
                paid(order, body);
            } else if (response.code() == 422) { // the provider's own no; a 401 or 503 would not be one
                declined(order, body);
            } else {
                throw new IOException("not known to be paid, after HTTP " + response.code());
            }
        }
    }

    private Response send(String order) throws IOException { // retried if need be, always under one ID
        Request request = new Request.Builder()
                .url(url)
                .post(RequestBody.create(order, JSON))
                .build();
        return client.newCall(request).execute();
    }
    // end::snippet[]

    private record Sent(IdempotenceId id, Instant at) {}

    private void paid(String order, String payment) {
        ends.put(order, "paid: " + payment);
        open.remove(order);
    }

    private void declined(String order, String why) {
        ends.put(order, "declined: " + why);
        open.remove(order);
    }

    Optional<String> endOf(String order) {
        return Optional.ofNullable(ends.get(order));
    }
}
