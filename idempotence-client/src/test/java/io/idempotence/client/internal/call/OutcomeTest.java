package io.idempotence.client.internal.call;

import static io.idempotence.client.internal.call.Outcome.FINAL;
import static io.idempotence.client.internal.call.Outcome.IN_PROGRESS;
import static io.idempotence.client.internal.call.Outcome.NOT_SENT;
import static io.idempotence.client.internal.call.Outcome.REFUSED;
import static io.idempotence.client.internal.call.Outcome.RETRYABLE;
import static io.idempotence.client.internal.call.Outcome.SUCCESS;
import static io.idempotence.client.internal.call.Outcome.UNDETERMINED;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.http.Observation;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.security.cert.CertificateException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class OutcomeTest {
    private static final Set<Integer> STATUSES =
            IdempotenceClientConfig.defaults().statuses();
    private static final RuntimeException THROWN = new IllegalStateException("whatever was made of it");

    private static Outcome of(Observation seen, Throwable thrown) {
        return Outcome.of(seen, thrown, STATUSES, false);
    }

    private static Observation failed(IOException e) {
        Observation seen = new Observation();
        seen.started();
        seen.failed(e);
        return seen;
    }

    private static Observation answered(int status, String... headers) {
        Map<String, Collection<String>> map = new java.util.HashMap<>();
        for (int i = 0; i < headers.length; i += 2) {
            map.put(headers[i], List.of(headers[i + 1]));
        }
        Observation seen = new Observation();
        seen.started();
        seen.answered(status, map);
        return seen;
    }

    private static IOException withEarlier(IOException e, IOException earlier) {
        e.addSuppressed(earlier);
        return e;
    }

    static Stream<Object[]> failures() {
        IOException trust = new SSLHandshakeException("PKIX");
        trust.initCause(new IllegalStateException(new CertificateException("no path")));
        return Stream.of(new Object[][] {
            {new ConnectException("refused"), NOT_SENT},
            {new UnknownHostException("nowhere"), NOT_SENT},
            {new NoRouteToHostException("no route"), NOT_SENT},
            {withEarlier(new ConnectException("refused"), new UnknownHostException("v6")), NOT_SENT},
            {withEarlier(new ConnectException("refused"), new SocketException("reset")), UNDETERMINED},
            {new SocketTimeoutException("connect timed out"), UNDETERMINED},
            {new SocketTimeoutException("Read timed out"), UNDETERMINED},
            {new InterruptedIOException("timeout"), UNDETERMINED},
            {new SocketException("Connection reset"), UNDETERMINED},
            {new EOFException("unexpected end of stream"), UNDETERMINED},
            {new IOException("Unexpected end of file from server"), UNDETERMINED},
            {new SSLHandshakeException("Remote host terminated the handshake"), UNDETERMINED},
            {trust, FINAL},
            {new SSLPeerUnverifiedException("other host"), FINAL},
            {new java.net.MalformedURLException("no protocol"), FINAL},
        });
    }

    @ParameterizedTest
    @MethodSource("failures")
    void ofFailures(IOException failure, Outcome expected) {
        assertThat(of(failed(failure), THROWN)).isEqualTo(expected);
        assertThat(expected.leavesDoubt(failed(failure))).isEqualTo(expected == UNDETERMINED);
        assertThat(expected.settles(failed(failure))).isFalse();
    }

    @ParameterizedTest
    @CsvSource({
        "408, RETRYABLE",
        "425, RETRYABLE",
        "429, RETRYABLE",
        "500, RETRYABLE",
        "502, RETRYABLE",
        "503, RETRYABLE",
        "504, RETRYABLE",
        "301, FINAL",
        "400, FINAL",
        "401, FINAL",
        "403, FINAL",
        "404, FINAL",
        "409, FINAL",
        "412, FINAL",
        "422, FINAL",
        "501, FINAL",
        "505, FINAL"
    })
    void ofStatuses(int status, Outcome expected) {
        assertThat(of(answered(status), THROWN)).isEqualTo(expected);
        assertThat(of(answered(status), null)).isEqualTo(expected);
        assertThat(of(answered(status, "idempotent-replayed", "true"), THROWN)).isEqualTo(FINAL);
        assertThat(expected.leavesDoubt(answered(status))).isEqualTo(status == 502 || status == 504);
    }

    @ParameterizedTest
    @CsvSource({
        "in-progress, 409, IN_PROGRESS",
        "storage-unavailable, 503, RETRYABLE",
        "overloaded, 503, RETRYABLE",
        "key-missing, 400, REFUSED",
        "key-invalid, 400, REFUSED",
        "key-reused, 422, REFUSED",
        "outcome-unknown, 409, REFUSED",
        "result-unavailable, 409, REFUSED",
        "not-invented-yet, 409, FINAL",
        "not-invented-yet, 503, FINAL"
    })
    void ofRefusals(String code, int status, Outcome expected) {
        assertThat(of(answered(status, "IDEMPOTENCY-REFUSAL", code), THROWN)).isEqualTo(expected);
    }

    @Test
    void refusalOnASuccessIsNoRefusal() {
        assertThat(of(answered(200, "Idempotency-Refusal", "in-progress"), null))
                .isEqualTo(SUCCESS);
    }

    @Test
    void of2xx() {
        assertThat(of(answered(200), null)).isEqualTo(SUCCESS);
        assertThat(of(answered(204), null)).isEqualTo(SUCCESS);
        assertThat(of(answered(200), THROWN)).isEqualTo(FINAL);
        Observation broken = answered(200);
        broken.bodyFailed(new IOException("reset"));
        assertThat(of(broken, THROWN)).isEqualTo(UNDETERMINED);
        assertThat(of(broken, null)).isEqualTo(SUCCESS);
        Observation brokenError = answered(400);
        brokenError.bodyFailed(new IOException("reset"));
        assertThat(of(brokenError, THROWN)).isEqualTo(FINAL);
    }

    @Test
    void ofCallsThatDidNotReachTheWire() {
        assertThat(of(new Observation(), null)).isEqualTo(SUCCESS);
        assertThat(of(new Observation(), THROWN)).isEqualTo(FINAL);
        assertThat(FINAL.settles(new Observation())).isFalse();
    }

    @Test
    void requestThatIsStillOutIsUndetermined() {
        Observation seen = new Observation();
        seen.started();
        assertThat(of(seen, THROWN)).isEqualTo(UNDETERMINED);
    }

    @Test
    void clientThatRetriesByItselfCannotHideAnEarlierDoubt() {
        Observation seen = failed(new SocketTimeoutException());
        seen.started();
        seen.failed(new ConnectException());
        assertThat(of(seen, THROWN)).isEqualTo(UNDETERMINED);

        Observation harmless = failed(new ConnectException());
        harmless.started();
        harmless.failed(new ConnectException());
        assertThat(of(harmless, THROWN)).isEqualTo(NOT_SENT);
    }

    @Test
    void answersGivenBeforeTheIdWasLookedAtSettleNothing() {
        for (int status :
                new int[] {301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 411, 413, 414, 415, 421, 431, 451}) {
            assertThat(FINAL.settles(answered(status))).as("%d", status).isFalse();
            assertThat(FINAL.settles(answered(status, "Idempotent-Replayed", "true")))
                    .as("a replayed %d", status)
                    .isTrue();
        }
        assertThat(REFUSED.settles(answered(400, "Idempotency-Refusal", "key-invalid")))
                .isFalse();
        assertThat(FINAL.settles(answered(409, "Idempotency-Refusal", "not-invented-yet")))
                .isFalse();
        assertThat(FINAL.settles(answered(403, "Idempotent-Replayed", "true"))).isTrue();
        for (int status : new int[] {400, 402, 409, 410, 412, 422, 424, 501}) {
            assertThat(FINAL.settles(answered(status))).as("%d", status).isTrue();
        }
        assertThat(REFUSED.settles(answered(409, "Idempotency-Refusal", "result-unavailable")))
                .isTrue();
        assertThat(SUCCESS.settles(answered(200))).isTrue();
        assertThat(RETRYABLE.settles(answered(500))).isFalse();
        assertThat(IN_PROGRESS.settles(answered(409))).isFalse();
    }

    /** A resumed call may have been carried out where it led. */
    @Test
    void storedRedirectThatWasNotFollowedSettlesNothing() {
        Observation seen = answered(307, "Idempotent-Replayed", "true");
        assertThat(FINAL.settles(seen)).isTrue();
        seen.redirectNotFollowed();
        assertThat(FINAL.settles(seen)).isFalse();
    }

    /** A 409 of the server half, whose marker was lost on the way, reads like one of the operation. */
    @Test
    void conflictSettlesNoDoubtUnlessItWasStored() {
        assertThat(of(answered(409), THROWN)).isEqualTo(FINAL);
        assertThat(Outcome.of(answered(409), THROWN, STATUSES, true)).isEqualTo(UNDETERMINED);
        assertThat(Outcome.of(answered(409, "Idempotent-Replayed", "true"), THROWN, STATUSES, true))
                .isEqualTo(FINAL);
        Observation sentBefore = answered(409);
        sentBefore.mayHaveBeenSentBefore();
        assertThat(of(sentBefore, THROWN)).isEqualTo(UNDETERMINED);
    }

    /** The poll would be a request that must not be sent; what became of the execution stays open. */
    @Test
    void executionInProgressIsNotAskedForAgainWithARequestThatMustNotBeSentAgain() {
        Observation seen = answered(409, "Idempotency-Refusal", "in-progress");
        assertThat(of(seen, null)).isEqualTo(IN_PROGRESS);
        seen.mustNotBeSentAgain();
        assertThat(of(seen, null)).isEqualTo(REFUSED);
        assertThat(REFUSED.leavesDoubt(seen)).isTrue();
        assertThat(REFUSED.settles(seen)).isFalse();
        assertThat(REFUSED.leavesDoubt(answered(422, "Idempotency-Refusal", "key-reused")))
                .isFalse();
    }
}
