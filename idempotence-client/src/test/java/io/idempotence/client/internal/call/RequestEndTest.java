package io.idempotence.client.internal.call;

import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.FINAL;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.IN_PROGRESS;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.NOT_SENT;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.REFUSED;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.RETRYABLE;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.UNDETERMINED;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
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
import org.junit.jupiter.params.provider.ValueSource;

class RequestEndTest {
    private static final Set<Integer> STATUSES =
            IdempotenceClientConfig.defaults().statuses();

    private static Outcome of(Observation seen, Throwable thrown) {
        return RequestEnd.of(seen, null, thrown, STATUSES, false).outcome();
    }

    private static Outcome inDoubt(Observation seen) {
        return RequestEnd.of(seen, null, thrown(), STATUSES, true).outcome();
    }

    private static boolean settles(Outcome outcome, Observation seen) {
        return new RequestEnd(outcome, seen, null, thrown()).settles();
    }

    private static boolean leavesDoubt(Outcome outcome, Observation seen) {
        return new RequestEnd(outcome, seen, null, thrown()).leavesDoubt();
    }

    private static Observation failed(IOException e) {
        Observation seen = new Observation();
        seen.started();
        seen.failed(e);
        return seen;
    }

    private static RuntimeException thrown() {
        return new IllegalStateException("whatever was made of it");
    }

    private static Observation responded(int status, String... headers) {
        Map<String, Collection<String>> map = new java.util.HashMap<>();
        for (int i = 0; i < headers.length; i += 2) {
            map.put(headers[i], List.of(headers[i + 1]));
        }
        Observation seen = new Observation();
        seen.started();
        seen.responded(status, map);
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
    void outcomesOfFailures(IOException failure, Outcome expected) {
        assertThat(of(failed(failure), thrown())).isEqualTo(expected);
        assertThat(leavesDoubt(expected, failed(failure))).isEqualTo(expected == UNDETERMINED);
        assertThat(settles(expected, failed(failure))).isFalse();
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
        assertThat(of(responded(status), thrown())).isEqualTo(expected);
        assertThat(of(responded(status), null)).isEqualTo(expected);
        assertThat(of(responded(status, "idempotent-replayed", "true"), thrown()))
                .isEqualTo(FINAL);
        assertThat(leavesDoubt(expected, responded(status))).isEqualTo(status == 502 || status == 504);
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
        assertThat(of(responded(status, "IDEMPOTENCY-REFUSAL", code), thrown())).isEqualTo(expected);
    }

    @Test
    void refusalOnASuccessIsNoRefusal() {
        assertThat(of(responded(200, "Idempotency-Refusal", "in-progress"), null))
                .isEqualTo(SUCCEEDED);
    }

    @Test
    void outcomesOf2xx() {
        assertThat(of(responded(200), null)).isEqualTo(SUCCEEDED);
        assertThat(of(responded(204), null)).isEqualTo(SUCCEEDED);
        assertThat(of(responded(200), thrown())).isEqualTo(FINAL);
        Observation broken = responded(200);
        broken.bodyFailed(new IOException("reset"));
        assertThat(of(broken, thrown())).isEqualTo(UNDETERMINED);
        assertThat(of(broken, null)).isEqualTo(SUCCEEDED);
        Observation brokenError = responded(400);
        brokenError.bodyFailed(new IOException("reset"));
        assertThat(of(brokenError, thrown())).isEqualTo(FINAL);
    }

    @Test
    void outcomesOfCallsThatDidNotReachTheWire() {
        assertThat(of(new Observation(), null)).isEqualTo(SUCCEEDED);
        assertThat(of(new Observation(), thrown())).isEqualTo(FINAL);
        assertThat(settles(FINAL, new Observation())).isFalse();
    }

    /** Gateways and content delivery networks invent their own: 520 to 527, 598 and others. */
    @ParameterizedTest
    @ValueSource(ints = {502, 504, 506, 507, 508, 511, 520, 522, 524, 527, 530, 598, 599})
    void errorOfAGatewaySettlesNothingAndLeavesDoubt(int status) {
        for (Outcome outcome : List.of(FINAL, RETRYABLE)) {
            assertThat(settles(outcome, responded(status))).isFalse();
            assertThat(leavesDoubt(outcome, responded(status))).isTrue();
        }
        Observation resent = responded(status);
        resent.started();
        assertThat(resent.hasEarlierDoubt()).isTrue();
        Observation stored = responded(status, "Idempotent-Replayed", "true");
        assertThat(settles(FINAL, stored)).isTrue();
        assertThat(leavesDoubt(FINAL, stored)).isFalse();
    }

    /** From any sender it is the same status as where it is retried, and that settles nothing either. */
    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 503})
    void errorThatIsLeftOutOfThoseToRetrySettlesNothing(int status) {
        assertThat(settles(FINAL, responded(status))).isFalse();
        assertThat(leavesDoubt(FINAL, responded(status))).isFalse();
    }

    @Test
    void requestStillInFlightIsUndetermined() {
        Observation seen = new Observation();
        seen.started();
        assertThat(of(seen, thrown())).isEqualTo(UNDETERMINED);
    }

    @Test
    void clientThatRetriesByItselfCannotHideAnEarlierDoubt() {
        Observation seen = failed(new SocketTimeoutException());
        seen.started();
        seen.failed(new ConnectException());
        assertThat(of(seen, thrown())).isEqualTo(UNDETERMINED);

        Observation harmless = failed(new ConnectException());
        harmless.started();
        harmless.failed(new ConnectException());
        assertThat(of(harmless, thrown())).isEqualTo(NOT_SENT);
    }

    @Test
    void responsesGivenBeforeTheIdWasLookedAtSettleNothing() {
        for (int status :
                new int[] {301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 411, 413, 414, 415, 421, 431, 451}) {
            assertThat(settles(FINAL, responded(status))).as("%d", status).isFalse();
            assertThat(settles(FINAL, responded(status, "Idempotent-Replayed", "true")))
                    .as("a replayed %d", status)
                    .isTrue();
        }
        assertThat(settles(REFUSED, responded(400, "Idempotency-Refusal", "key-invalid")))
                .isFalse();
        assertThat(settles(FINAL, responded(409, "Idempotency-Refusal", "not-invented-yet")))
                .isFalse();
        assertThat(settles(FINAL, responded(403, "Idempotent-Replayed", "true")))
                .isTrue();
        for (int status : new int[] {400, 402, 409, 410, 412, 422, 424, 501}) {
            assertThat(settles(FINAL, responded(status))).as("%d", status).isTrue();
        }
        assertThat(settles(REFUSED, responded(409, "Idempotency-Refusal", "result-unavailable")))
                .isTrue();
        assertThat(settles(SUCCEEDED, responded(200))).isTrue();
        assertThat(settles(RETRYABLE, responded(500))).isFalse();
        assertThat(settles(IN_PROGRESS, responded(409))).isFalse();
    }

    /** A resumed call may have been executed where it led. */
    @Test
    void storedRedirectThatWasNotFollowedSettlesNothing() {
        Observation seen = responded(307, "Idempotent-Replayed", "true");
        assertThat(settles(FINAL, seen)).isTrue();
        seen.redirectNotFollowed();
        assertThat(settles(FINAL, seen)).isFalse();
    }

    /** A 409 of the server half, whose marker was lost on the way, reads like one of the operation. */
    @Test
    void conflictSettlesNoDoubtUnlessItWasStored() {
        assertThat(of(responded(409), thrown())).isEqualTo(FINAL);
        assertThat(inDoubt(responded(409))).isEqualTo(UNDETERMINED);
        assertThat(inDoubt(responded(409, "Idempotent-Replayed", "true"))).isEqualTo(FINAL);
        Observation sentBefore = responded(409);
        sentBefore.mayHaveBeenSentBefore();
        assertThat(of(sentBefore, thrown())).isEqualTo(UNDETERMINED);
    }

    /** The poll would be a request that must not be sent; what became of the execution stays open. */
    @Test
    void executionInProgressIsNotAskedForAgainWithARequestThatMustNotBeSentAgain() {
        Observation seen = responded(409, "Idempotency-Refusal", "in-progress");
        assertThat(of(seen, null)).isEqualTo(IN_PROGRESS);
        seen.mustNotBeSentAgain();
        assertThat(of(seen, null)).isEqualTo(REFUSED);
        assertThat(leavesDoubt(REFUSED, seen)).isTrue();
        assertThat(settles(REFUSED, seen)).isFalse();
        assertThat(leavesDoubt(REFUSED, responded(422, "Idempotency-Refusal", "key-reused")))
                .isFalse();
    }
}
