package io.idempotence.client.feign;

import feign.RequestTemplate;
import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells an operator once for a method that a call whose outcome is unknown was made again under a new ID, where the server half
 * cannot see that it is the same. Remembers the last unknown call only: an outage has many, and one line is enough. Thread-safe.
 */
final class RepeatWarning {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);

    /** A retry comes within seconds. What comes later is more often an equal order than the same one. */
    private static final long SHORTLY_NANOS = Duration.ofMinutes(1).toNanos();

    private final String client;
    private final String method;
    private final AtomicBoolean told = new AtomicBoolean();
    private volatile @Nullable Unknown last;

    RepeatWarning(String client, String method) {
        this.client = client;
        this.method = method;
    }

    private record Unknown(IdempotenceId id, String url, int body, long at) {}

    /** @param url as it was sent */
    void ended(IdempotenceId id, String url, byte @Nullable [] body, boolean unknown) {
        if (told.get()) {
            return;
        }
        Unknown before = last;
        if (unknown) {
            last = new Unknown(id, url, Arrays.hashCode(body), System.nanoTime());
        } else if (before != null && before.id.equals(id)) {
            last = null;
        }
    }

    /** @param template of the first request, whose URL may lack the target's address yet */
    void beginsWithNewId(RequestTemplate template) {
        Unknown before = last;
        if (before == null
                || System.nanoTime() - before.at > SHORTLY_NANOS
                || !before.url.endsWith(template.url())
                || before.body != Arrays.hashCode(template.body())
                || !told.compareAndSet(false, true)) {
            return;
        }
        last = null;
        LOG.warn(
                "{} of {} was called again with the same arguments after a call whose outcome is unknown, under a new ID: if that"
                        + " is a retry, the operation may be executed twice. Put the retry inside IdempotenceScope.with or saving,"
                        + " or ask again with IdempotenceScope.resume and the ID of the exception. This is logged once",
                method,
                client);
    }
}
