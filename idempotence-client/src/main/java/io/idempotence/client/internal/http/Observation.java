package io.idempotence.client.internal.http;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The observations that the innermost HTTP client made of one exchange. The layers above it (decoders, error decoders, propagation
 * policies) may hide them, so decisions use only these.
 *
 * <p>The thread of the exchange writes it, and the thread that decides reads it; they may differ.
 */
public final class Observation {
    /** The 5xx statuses of the operation, or of a server half or container that has not called it. */
    private static final Set<Integer> NOT_OF_A_GATEWAY = Set.of(500, 501, 503, 505);

    private static final Set<Refusal> AFTER_A_CLAIM =
            Set.of(Refusal.IN_PROGRESS, Refusal.OUTCOME_UNKNOWN, Refusal.RESULT_UNAVAILABLE);

    private volatile boolean open;
    private volatile int status;
    private volatile Map<String, Collection<String>> headers = Map.of();
    private volatile @Nullable IOException failure;
    private volatile @Nullable IOException bodyFailure;
    private volatile boolean unsent;
    private volatile boolean bodyTaken;
    private volatile boolean earlierDoubt;
    private volatile boolean earlierFailure;
    private volatile boolean hiddenDoubt;
    private volatile boolean mustNotBeSentAgain;
    private volatile boolean redirectRefused;
    private volatile boolean givenUp;

    /** Records that a request is about to be sent. */
    public void started() {
        keepLast();
        open = true;
        status = 0;
        headers = Map.of();
        failure = null;
        unsent = false;
        bodyFailure = null;
    }

    /** Keeps what the last request shows about the operation, before another request or response replaces it. */
    private void keepLast() {
        boolean failed = failure != null && !isNotSent();
        boolean executed = isSuccess() || (isReplayed() && status != 307 && status != 308);
        earlierDoubt |= open || failed || executed || isGatewayError() || isRefusedAfterAClaim();
        earlierFailure |= isOfAFailedHandler();
    }

    /** Records the status that the client returned. If the last request had another status, code on the client side made the response. */
    public void returned(int returnedStatus) {
        if (returnedStatus != status) {
            keepLast();
            // The response of an executed operation may be such a redirect. RedirectRule.follows counts one that is
            // followed.
            earlierDoubt |= status >= 301 && status <= 303;
        }
    }

    /** Records a status line and headers. */
    public void responded(int responseStatus, Map<String, Collection<String>> responseHeaders) {
        headers = responseHeaders;
        status = responseStatus;
        open = false;
    }

    /** Records a failure before a status line. */
    public void failed(IOException e) {
        failure = e;
        open = false;
    }

    /** Records a failure, like {@link #failed}, with the certainty that no byte of the request was sent. */
    public void notSent(IOException e) {
        unsent = true;
        failed(e);
    }

    /** Records that a request was not sent because the deadline of its call was over. Returns the exception that reports it. */
    public SocketTimeoutException notSentInTime() {
        return withheld(
                new SocketTimeoutException("the deadline of the call was over before its request could be sent"));
    }

    /** Records that a request was not sent because the thread that would wait for it is interrupted. Returns the exception that reports it. */
    public InterruptedIOException notSentByInterrupt() {
        return withheld(new InterruptedIOException("the thread was interrupted before its request could be sent"));
    }

    /** Records that a request was not sent because its call was cancelled. Returns the exception that reports it. */
    public InterruptedIOException notSentAfterCancellation() {
        return withheld(new InterruptedIOException("the call was cancelled before its request could be sent"));
    }

    /** An earlier request of the same exchange may have been sent. */
    private <E extends IOException> E withheld(E reason) {
        started();
        notSent(reason);
        return reason;
    }

    /** Records that code on this side made the response, with the certainty that no byte of the request was sent. */
    public void respondedHere() {
        unsent = true;
    }

    /** Records that the bytes of the request's body were read, so that they may have been sent. */
    public void bodyTaken() {
        bodyTaken = true;
    }

    /**
     * Records an exception of the HTTP client that is not an I/O failure.
     *
     * @param beforeSending whether it certainly is a refusal to send
     */
    public void broken(boolean beforeSending) {
        open = false;
        if (!beforeSending) {
            earlierDoubt = true;
        }
    }

    /** Records that the HTTP client may have sent the request before, which the failure does not show. */
    public void mayHaveBeenSentBefore() {
        earlierDoubt = true;
    }

    /** Records that a request of the HTTP client may have been executed, which a later failure of that client would hide. */
    public void mayHaveBeenExecuted() {
        hiddenDoubt = true;
    }

    /** Records that the HTTP client failed after the requests that it reported. If one of them may have been executed, that is a doubt. */
    public void failedAfterItsRequests() {
        earlierDoubt |= hiddenDoubt;
    }

    /** Whether {@link #mayHaveBeenExecuted} was called. */
    public boolean hasHiddenDoubt() {
        return hiddenDoubt;
    }

    /** Records that the request must not be sent again: its body can be read only once, or the caller gave up. */
    public void mustNotBeSentAgain() {
        mustNotBeSentAgain = true;
    }

    /** Records that the caller no longer waits. A request that has not left yet must not leave. */
    public void giveUp() {
        givenUp = true;
    }

    /**
     * Adds what an HTTP client observed of this exchange, beyond the response or failure that it returns. Code above that client may replace
     * what it returns, so its last response counts too.
     */
    public void learnFrom(Observation below) {
        earlierDoubt |= below.earlierDoubt || below.isGatewayError();
        earlierFailure |= below.earlierFailure || below.isOfAFailedHandler();
    }

    /** Records that the response is a redirect that was not followed. Its target might have shown the outcome of the operation. */
    public void redirectNotFollowed() {
        redirectRefused = true;
    }

    /** Records an interrupted body after the status line. */
    public void bodyFailed(IOException e) {
        bodyFailure = e;
    }

    /** Whether the exchange failed and its request certainly was not sent. */
    public boolean isNotSent() {
        IOException e = failure;
        return e != null && (unsent || IoFailures.certainlyNotSent(e));
    }

    /** Whether {@link #respondedHere} was called. */
    public boolean isRespondedHere() {
        return unsent && failure == null;
    }

    /** Whether {@link #bodyTaken} was called. */
    public boolean isBodyTaken() {
        return bodyTaken;
    }

    /** Whether a request is in flight without a response. */
    public boolean isOpen() {
        return open;
    }

    /** Whether no request was made: there was neither a response nor a failure, and none is in flight. */
    public boolean hasSeenNothing() {
        return status == 0 && failure == null && !open && !earlierDoubt;
    }

    /** Whether an earlier request of the same exchange, by a client that retries by itself, may have been executed. */
    public boolean hasEarlierDoubt() {
        return earlierDoubt;
    }

    /**
     * Whether {@link #isOfAFailedHandler} was true for an earlier request of the same exchange, or for any request that an HTTP client
     * below reported.
     */
    public boolean hasEarlierFailure() {
        return earlierFailure;
    }

    /** Whether {@link #redirectNotFollowed} was called. */
    public boolean isRedirectNotFollowed() {
        return redirectRefused;
    }

    /** Whether {@link #giveUp} was called. */
    public boolean isGivenUp() {
        return givenUp;
    }

    /** Whether {@link #mustNotBeSentAgain} was not called. */
    public boolean mayBeSentAgain() {
        return !mustNotBeSentAgain;
    }

    /** The status, or 0 if there was no response. */
    public int status() {
        return status;
    }

    /** The response's headers; empty if there was no response. */
    public Map<String, Collection<String>> headers() {
        return headers;
    }

    @Nullable
    public IOException failure() {
        return failure;
    }

    @Nullable
    public IOException bodyFailure() {
        return bodyFailure;
    }

    /** Whether the operation was executed, as far as the status shows. */
    public boolean isSuccess() {
        return status >= 200 && status < 300;
    }

    /** Whether the response is a stored one. */
    public boolean isReplayed() {
        for (String value : values(IdempotenceHeaders.IDEMPOTENT_REPLAYED)) {
            if (value.trim().equalsIgnoreCase("true")) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether the response may come from a gateway that passed the request on and cannot tell the outcome: any 5xx without another known
     * meaning, such as 502, 504 and non-standard ones.
     */
    public boolean isGatewayError() {
        return isServerError() && !NOT_OF_A_GATEWAY.contains(status);
    }

    /** Whether the response may come from a handler that failed after it took effect. */
    public boolean isOfAFailedHandler() {
        return isServerError() && NOT_OF_A_GATEWAY.contains(status);
    }

    private boolean isServerError() {
        return status >= 500 && !isRespondedHere() && !isReplayed() && !namesRefusal();
    }

    /** The refusal, if the response is an error with a code that this version defines. */
    public Optional<Refusal> refusal() {
        if (status < 400) {
            return Optional.empty();
        }
        return values(IdempotenceHeaders.IDEMPOTENCY_REFUSAL).stream()
                .findFirst()
                .flatMap(Refusal::ofCode);
    }

    /** Whether the response is a refusal that shows that an attempt may have been executed. */
    private boolean isRefusedAfterAClaim() {
        return refusal().filter(AFTER_A_CLAIM::contains).isPresent();
    }

    /** Whether the response is an error of this library, with any code, defined in this version or not. */
    public boolean namesRefusal() {
        return status >= 400 && !values(IdempotenceHeaders.IDEMPOTENCY_REFUSAL).isEmpty();
    }

    public List<String> values(String header) {
        return HeaderLines.of(headers, header);
    }
}
