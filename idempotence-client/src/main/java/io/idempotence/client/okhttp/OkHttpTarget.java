package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.call.RepeatWarning;
import io.idempotence.client.internal.call.Retries;
import java.time.Duration;
import java.util.Locale;
import okhttp3.Request;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The calls of one HTTP method to one client: their name, settings, budget and retries. */
final class OkHttpTarget {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentOkHttp.class);

    private final String client;
    private final String method;
    private final IdempotenceClientConfig config;
    private final RetryBudget budget;
    private final Retries retries;
    private final RepeatWarning repeats;

    OkHttpTarget(String client, String method, IdempotenceClientConfig common) {
        this.client = client;
        this.method = method;
        this.config = common.forMethod(client, method);
        this.budget = common.budget(client);
        this.retries = new Retries(client, config);
        this.repeats = new RepeatWarning(LOG, client, method);
    }

    String client() {
        return client;
    }

    IdempotenceClientConfig config() {
        return config;
    }

    /** True if a request of an unsafe method carries an ID: its caller's own, or as the settings say. */
    boolean givesId(Request request) {
        return request.header(IDEMPOTENCY_KEY) != null
                || config.methods().contains(request.method().toUpperCase(Locale.ROOT));
    }

    /** As the registry has it now. */
    Retry retry() {
        return retries.of(method);
    }

    RepeatWarning repeats() {
        return repeats;
    }

    LogicalCall open(Duration deadline) {
        return new LogicalCall(client, method, config, budget, deadline);
    }
}
