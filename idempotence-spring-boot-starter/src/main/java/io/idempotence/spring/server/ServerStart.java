package io.idempotence.spring.server;

import io.idempotence.IdempotenceId;
import io.idempotence.internal.Causes;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties.Storage;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.support.DefaultSingletonBeanRegistry;
import org.springframework.context.SmartLifecycle;

/**
 * The check of the storage while the application starts. It runs beside the start, and writes and deletes one record, so that missing rights
 * and tables are found. What only an operator can repair fails the start. A storage that is down does not: requests get 503 until it is up.
 *
 * <p>The start waits for the check after every bean exists and before anything serves, because even the last bean may be the first to use
 * the storage. Storage that is first used later is checked then.
 */
final class ServerStart implements SmartLifecycle {
    private static final Logger LOG = LoggerFactory.getLogger(ServerStart.class);
    private static final Duration LONGEST = Duration.ofSeconds(3);
    private static final Duration PROBE_LIVES = Duration.ofSeconds(10);
    private static final Pattern DENIED_BY_DATABASE = Pattern.compile("lacks a right|user or password refused");
    private static final Pattern DENIED = Pattern.compile("lacks the right|\\b(NOPERM|NOAUTH|WRONGPASS)\\b");

    private final DefaultSingletonBeanRegistry beans;
    private volatile String filter = "";
    private volatile @Nullable Check check;
    private volatile boolean isRunning;

    ServerStart(DefaultSingletonBeanRegistry beans) {
        this.beans = beans;
    }

    private record Check(ServerParts parts, Thread thread, CompletableFuture<Void> result) {}

    /** Adds what the filter covers to the line that is logged. */
    void describeFilter(String what) {
        filter = what + "; ";
    }

    /** What is in use; null if nothing in this application has asked for it. */
    @Nullable
    ServerParts parts() {
        Check begun = check;
        return begun == null ? null : begun.parts();
    }

    /** Begins the check. The beans that the storage uses exist. */
    void begin(ServerParts parts) {
        CompletableFuture<Void> result = new CompletableFuture<>();
        Thread thread = new Thread(
                () -> {
                    try {
                        probe(parts.storage().storage(), parts.namespace().name());
                        result.complete(null);
                    } catch (Throwable e) {
                        result.completeExceptionally(e);
                    }
                },
                "idempotence-start");
        thread.setDaemon(true);
        Check begun = new Check(parts, thread, result);
        check = begun;
        // After a start that failed, ends the check before the beans that it uses: they would wait for it.
        beans.registerDisposableBean("idempotenceStartCheck", this::cancel);
        thread.start();
        if (isRunning) {
            end(begun);
        }
    }

    /** Ends a check that still runs. */
    void cancel() {
        Check begun = check;
        if (begun != null) {
            begun.thread().interrupt();
        }
    }

    @Override
    public void start() {
        isRunning = true;
        Check begun = check;
        if (begun != null) {
            end(begun);
        }
    }

    @Override
    public void stop() {
        isRunning = false;
    }

    @Override
    public boolean isRunning() {
        return isRunning;
    }

    /** Before everything that serves requests or messages. */
    @Override
    public int getPhase() {
        return Integer.MIN_VALUE;
    }

    private void end(Check begun) {
        String what = filter + begun.parts().described();
        try {
            begun.result().get(LONGEST.toMillis(), TimeUnit.MILLISECONDS);
            LOG.info("Idempotence: {}", what);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException e) {
            down(what, "no response within " + LONGEST.toSeconds() + " s");
        } catch (ExecutionException e) {
            refuse(begun.parts(), Objects.requireNonNullElse(e.getCause(), e));
            down(
                    what,
                    String.valueOf(Objects.requireNonNullElse(e.getCause(), e).getMessage()));
        }
    }

    /** @throws SetUpException if only an operator can repair this */
    private static void refuse(ServerParts parts, Throwable fault) {
        boolean isDatabase = parts.storage().kind().equals(IdempotenceServerProperties.text(Storage.JDBC));
        for (Throwable cause : Causes.of(fault).toList()) {
            String message = String.valueOf(cause.getMessage());
            if (isDatabase && (cause instanceof IllegalStateException || cause instanceof IllegalArgumentException)) {
                throw SetUpException.of(
                        "The database cannot keep the records of the idempotence framework: " + message + ".",
                        "Create the tables with the schema file of your database (io/idempotence/server/jdbc/ in"
                                + " idempotence-server), or set idempotence.server.jdbc.create-if-missing to true.",
                        fault);
            }
            if (isDatabase && DENIED_BY_DATABASE.matcher(message).find()) {
                throw SetUpException.of(
                        "The database user may not keep the records of the idempotence framework: " + message + ".",
                        "Check the user and password of the DataSource, and grant the user SELECT, INSERT, UPDATE and DELETE on"
                                + " the tables, and CREATE if idempotence.server.jdbc.create-if-missing is true.",
                        fault);
            }
            if (!isDatabase && DENIED.matcher(message).find()) {
                throw SetUpException.of(
                        "The Redis user may not keep the records of the idempotence framework: " + fault.getMessage()
                                + ".",
                        "Check user and password (spring.data.redis.username, spring.data.redis.password), and grant"
                                + " the user: ACL SETUSER <user> ~idem:* +evalsha +eval +get +getrange +exists +set +pexpire"
                                + " +pttl +del +ping +echo.",
                        fault);
            }
        }
    }

    private static void down(String what, String why) {
        LOG.warn(
                "Idempotence: {}. The storage does not respond yet: {}. The application starts. Protected requests get 503"
                        + " until the storage responds.",
                what,
                why);
    }

    /** Makes each kind of call once. */
    private static void probe(IdempotenceStorage storage, String namespace) {
        SecureRandom random = new SecureRandom();
        StorageKey key = StorageKey.of(namespace, "", "probe", IdempotenceId.of(Long.toHexString(random.nextLong())));
        ClaimRequest request =
                new ClaimRequest(key, Fingerprint.NONE, Owner.random(random), PROBE_LIVES, PROBE_LIVES, false);
        if (storage.claim(request) instanceof ClaimResult.Claimed claimed) {
            Claim claim = claimed.claim();
            storage.renew(claim, PROBE_LIVES);
            storage.release(claim, PROBE_LIVES);
        }
        storage.find(key);
        storage.delete(key);
    }
}
