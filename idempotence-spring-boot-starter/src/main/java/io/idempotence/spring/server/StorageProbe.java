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
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The probe of a storage: one record is claimed, released and deleted, so that missing rights and tables are found. */
final class StorageProbe {
    private static final Duration PROBE_LIVES = Duration.ofSeconds(10);
    private static final Pattern DENIED_BY_DATABASE = Pattern.compile("lacks a right|user or password refused");
    private static final Pattern DENIED = Pattern.compile("lacks the right|\\b(NOPERM|NOAUTH|WRONGPASS)\\b");

    private final SecureRandom random = new SecureRandom();
    private final ServerParts parts;

    StorageProbe(ServerParts parts) {
        this.parts = parts;
    }

    /** Makes each kind of call once. Throws what the storage throws. */
    void run() {
        IdempotenceStorage storage = parts.storage().storage();
        StorageKey key = key();
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

    /** Deletes a record that does not exist. Throws what the storage throws. */
    void write() {
        parts.storage().storage().delete(key());
    }

    private StorageKey key() {
        return StorageKey.of(
                parts.namespace().name(), "", "probe", IdempotenceId.of(Long.toHexString(random.nextLong())));
    }

    /** What only an operator can repair; null if the storage may work later by itself. */
    @Nullable
    SetUpException refusal(Throwable fault) {
        boolean isDatabase = parts.storage().kind().equals(IdempotenceServerProperties.text(Storage.JDBC));
        for (Throwable cause : Causes.of(fault).toList()) {
            String message = String.valueOf(cause.getMessage());
            if (isDatabase && (cause instanceof IllegalStateException || cause instanceof IllegalArgumentException)) {
                return SetUpException.of(
                        "The database cannot keep the records of the idempotence framework: " + message + ".",
                        "Create the tables with the schema file of your database (io/idempotence/server/jdbc/ in"
                                + " idempotence-server), or set idempotence.server.jdbc.create-if-missing to true.",
                        fault);
            }
            if (isDatabase && DENIED_BY_DATABASE.matcher(message).find()) {
                return SetUpException.of(
                        "The database user may not keep the records of the idempotence framework: " + message + ".",
                        "Check the user and password of the DataSource, and grant the user SELECT, INSERT, UPDATE and DELETE on"
                                + " the tables, and CREATE if idempotence.server.jdbc.create-if-missing is true.",
                        fault);
            }
            if (!isDatabase && DENIED.matcher(message).find()) {
                return SetUpException.of(
                        "The Redis user may not keep the records of the idempotence framework: " + fault.getMessage()
                                + ".",
                        "Check user and password (spring.data.redis.username, spring.data.redis.password), and grant"
                                + " the user: ACL SETUSER <user> ~idem:* +evalsha +eval +get +getrange +exists +set +pexpire"
                                + " +pttl +del +ping +echo.",
                        fault);
            }
        }
        return null;
    }
}
