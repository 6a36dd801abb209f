package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.io.IOException;
import java.io.OutputStream;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.tls.HeldCertificate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;

/** {@code rediss://}: the JVM trusts the server's certificate, and the certificate names the host, or nothing runs. */
class RedisTlsTest {
    private static final String TRUST_STORE = "javax.net.ssl.trustStore";
    private static final String TRUST_STORE_PASSWORD = "javax.net.ssl.trustStorePassword";
    private static final String PASSWORD = "changeit";
    private static final String REASON =
            "TLS failed; the JVM must trust the server's certificate, and the certificate must name the host";

    private static final HeldCertificate TRUSTED = authority("trusted");
    private static final HeldCertificate UNKNOWN = authority("unknown");

    @TempDir
    private static Path directory;

    private static EmbeddedRedis redis;
    private static URI uri;

    @BeforeAll
    static void start() throws IOException, GeneralSecurityException {
        trust(TRUSTED);
        redis = EmbeddedRedis.startVersion7();
        present(certificate(TRUSTED, "localhost"));
        uri = URI.create("rediss://app:s3cret@localhost:" + openTlsPort());
        try (Jedis jedis = redis.jedis()) {
            jedis.aclSetUser("app", "on", ">s3cret", "~idem:*", "+@all");
        }
    }

    @AfterAll
    static void stop() {
        System.clearProperty(TRUST_STORE);
        System.clearProperty(TRUST_STORE_PASSWORD);
        redis.close();
    }

    @AfterEach
    void presentTheRightOneAgain() throws IOException {
        present(certificate(TRUSTED, "localhost"));
    }

    @Test
    void aTrustedCertificateForTheHostIsEnough() {
        StorageKey key = Claims.newKey();
        try (RedisIdempotenceStorage storage = EmbeddedRedis.builder(uri).build()) {
            Claim claim = Claims.claim(storage, key);
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
            assertThat(storage.renew(claim, Claims.LEASE)).isEqualTo(new WriteResult.Done());
            assertThat(storage.complete(claim, new byte[] {7}, Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Completed.class);
        }
        LeftBehind.awaitNothing(redis);
    }

    @Test
    void aCertificateOfAnUnknownAuthorityIsRefusedAtStart() throws IOException {
        present(certificate(UNKNOWN, "localhost"));
        assertRefusedAtStart();
    }

    @Test
    void aCertificateForAnotherHostIsRefusedAtStart() throws IOException {
        present(certificate(TRUSTED, "redis.example"));
        assertRefusedAtStart();
    }

    private static void assertRefusedAtStart() {
        assertThatThrownBy(() -> EmbeddedRedis.builder(uri).build())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("Redis at " + uri.getHost() + ":" + uri.getPort() + " cannot be used: " + REASON)
                .hasMessageNotContaining("s3cret");
        LeftBehind.awaitNothing(redis);
    }

    @Test
    void aWrongPasswordIsRefusedWithoutShowingIt() {
        URI wrong = URI.create(uri.toString().replace("s3cret", "wr0ng"));
        assertThatThrownBy(() -> EmbeddedRedis.builder(wrong).build())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("denies the user or the password")
                .hasMessageNotContaining("wr0ng");
    }

    /** P6: also when the server, or who poses as it, changes after the start. */
    @Test
    void nothingRunsWhenTheCertificateIsNoLongerTrusted() throws Exception {
        AtomicInteger runs = new AtomicInteger();
        IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
        try (Idempotence idempotence =
                        Idempotence.over(EmbeddedRedis.builder(uri).build());
                CapturedLog log = CapturedLog.of(Idempotence.class)) {
            present(certificate(UNKNOWN, "localhost"));
            disconnectAll();
            assertThatThrownBy(() -> idempotence.execute(id, () -> "run " + runs.incrementAndGet()))
                    .isInstanceOfSatisfying(
                            ExecutionRefusedException.class,
                            e -> assertThat(e.refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE));
            assertThat(runs).hasValue(0);
            assertThat(log.warnings())
                    .extracting(event -> event.getThrowableProxy().getMessage())
                    .containsExactly("Redis at localhost:" + uri.getPort() + " could not claim: " + REASON);

            present(certificate(TRUSTED, "localhost"));
            // The claim that failed is being given back, and for a moment it is there.
            String result = await().ignoreExceptionsMatching(e ->
                            e instanceof ExecutionRefusedException refused && refused.refusal() == Refusal.IN_PROGRESS)
                    .until(() -> idempotence.execute(id, () -> "run " + runs.incrementAndGet()), run -> true);
            assertThat(result).isEqualTo("run 1");
        }
    }

    @Test
    void aLargeCompletionIsUnavailableInABoundedTime() throws Exception {
        assumeThat(System.getProperty("idempotence.test.jedis", ""))
                .as("a version that can close a connection that writes")
                .doesNotStartWith("6.");
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.connect(uri)) {
            Claim claim = Claims.claim(storage, Claims.newKey());
            FutureTask<WriteResult> completion =
                    new FutureTask<>(() -> storage.complete(claim, new byte[32 << 20], Claims.RETENTION));
            redis.pause();
            try {
                new Thread(completion).start();
                await().atMost(Duration.ofSeconds(30)).until(() -> {
                    assertThatThrownBy(() -> storage.renew(claim, Claims.LEASE))
                            .isInstanceOf(StorageUnavailableException.class);
                    return completion.isDone();
                });
            } finally {
                redis.resume();
            }
            assertThatThrownBy(completion::get)
                    .hasCauseInstanceOf(StorageUnavailableException.class)
                    .hasRootCauseInstanceOf(SocketTimeoutException.class);
        }
    }

    private static void disconnectAll() {
        try (Jedis jedis = redis.jedis()) {
            jedis.sendCommand(Protocol.Command.CLIENT, "KILL", "USER", "app");
        }
    }

    private static HeldCertificate authority(String name) {
        return new HeldCertificate.Builder()
                .commonName(name)
                .certificateAuthority(0)
                .build();
    }

    private static HeldCertificate certificate(HeldCertificate authority, String host) {
        return new HeldCertificate.Builder()
                .commonName(host)
                .addSubjectAlternativeName(host)
                .signedBy(authority)
                .build();
    }

    /** The JVM's own trust, which {@code rediss://} goes by. */
    private static void trust(HeldCertificate authority) throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setCertificateEntry("authority", authority.certificate());
        Path file = directory.resolve("trusted.p12");
        try (OutputStream out = Files.newOutputStream(file)) {
            store.store(out, PASSWORD.toCharArray());
        }
        System.setProperty(TRUST_STORE, file.toString());
        System.setProperty(TRUST_STORE_PASSWORD, PASSWORD);
    }

    /** What new connections see from now on. */
    private static void present(HeldCertificate certificate) throws IOException {
        Path chain = Files.writeString(Files.createTempFile(directory, "server", ".crt"), certificate.certificatePem());
        Path key =
                Files.writeString(Files.createTempFile(directory, "server", ".key"), certificate.privateKeyPkcs8Pem());
        try (Jedis jedis = redis.jedis()) {
            jedis.configSet(
                    "tls-auth-clients", "no", "tls-cert-file", chain.toString(), "tls-key-file", key.toString());
        }
    }

    private static int openTlsPort() throws IOException {
        for (int attempt = 1; ; attempt++) {
            int port = EmbeddedRedis.freePort();
            try (Jedis jedis = redis.jedis()) {
                jedis.configSet("tls-port", Integer.toString(port));
                return port;
            } catch (JedisDataException e) {
                if (attempt == 10) {
                    throw e;
                }
            }
        }
    }
}
