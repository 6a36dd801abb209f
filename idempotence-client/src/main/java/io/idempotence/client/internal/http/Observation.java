package io.idempotence.client.internal.http;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What went over the wire in one exchange, as the innermost HTTP client saw it. Everything above it (decoders, error decoders,
 * propagation policies) may hide it, so nothing else is asked.
 *
 * <p>Written by the thread that talks, read by the one that decides; they may differ.
 */
public final class Observation {
    /** Those of the operation, or of a server half or container that has not called it. */
    private static final Set<Integer> NOT_OF_A_GATEWAY = Set.of(500, 501, 503, 505);

    private volatile boolean open;
    private volatile int status;
    private volatile Map<String, Collection<String>> headers = Map.of();
    private volatile @Nullable IOException failure;
    private volatile @Nullable IOException bodyFailure;
    private volatile boolean unsent;
    private volatile boolean bodyTaken;
    private volatile boolean earlierDoubt;
    private volatile boolean once;
    private volatile boolean redirectRefused;

    /** A request is about to leave. */
    public void started() {
        IOException before = failure;
        if (open || isGatewayError() || (before != null && !isNotSent())) {
            earlierDoubt = true;
        }
        open = true;
        status = 0;
        headers = Map.of();
        failure = null;
        unsent = false;
        bodyFailure = null;
    }

    /** A status line and headers came back. */
    public void answered(int answerStatus, Map<String, Collection<String>> answerHeaders) {
        headers = answerHeaders;
        status = answerStatus;
        open = false;
    }

    /** The exchange failed before a status line. */
    public void failed(IOException e) {
        failure = e;
        open = false;
    }

    /** As {@link #failed}, and it is certain that no byte of the request left. */
    public void notSent(IOException e) {
        unsent = true;
        failed(e);
    }

    /** The body of the request is asked for its bytes: whoever does may send them. */
    public void bodyTaken() {
        bodyTaken = true;
    }

    /**
     * The HTTP client threw something that is no I/O failure.
     *
     * @param beforeSending it certainly is its refusal to send
     */
    public void broken(boolean beforeSending) {
        open = false;
        if (!beforeSending) {
            earlierDoubt = true;
        }
    }

    /** The HTTP client may have sent the request before by itself, and the failure does not tell. */
    public void mayHaveBeenSentBefore() {
        earlierDoubt = true;
    }

    /** Whatever comes of this exchange, its request must not be sent again: its body can be read only once, or the caller gave up. */
    public void mustNotBeSentAgain() {
        once = true;
    }

    /** What another half below saw of this exchange, beyond the response or failure that came of it. */
    public void learnFrom(Observation below) {
        if (below.earlierDoubt) {
            mayHaveBeenSentBefore();
        }
        if (below.redirectRefused) {
            redirectNotFollowed();
        }
    }

    /** The response is a redirect that was not followed; whoever it names might have told what became of the operation. */
    public void redirectNotFollowed() {
        redirectRefused = true;
    }

    /** The body broke off after the status line. */
    public void bodyFailed(IOException e) {
        bodyFailure = e;
    }

    /** True if the exchange failed and its request certainly did not leave. */
    public boolean isNotSent() {
        IOException e = failure;
        return e != null && (unsent || IoFailures.certainlyNotSent(e));
    }

    /** True after {@link #bodyTaken}. */
    public boolean isBodyTaken() {
        return bodyTaken;
    }

    /** True while a request is in flight and nothing came back. */
    public boolean isOpen() {
        return open;
    }

    /** True if an earlier request of the same exchange, made by a client that retries by itself, may have been executed. */
    public boolean hasEarlierDoubt() {
        return earlierDoubt;
    }

    /** True after {@link #redirectNotFollowed}. */
    public boolean isRedirectNotFollowed() {
        return redirectRefused;
    }

    /** False after {@link #mustNotBeSentAgain}. */
    public boolean mayBeSentAgain() {
        return !once;
    }

    /** The status, or 0 if there was no response. */
    public int status() {
        return status;
    }

    /** The response's headers as they came; empty if there was no response. */
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

    /** True if the response says that it was stored. */
    public boolean isReplayed() {
        for (String value : values(IdempotenceHeaders.IDEMPOTENT_REPLAYED)) {
            if (value.trim().equalsIgnoreCase("true")) {
                return true;
            }
        }
        return false;
    }

    /**
     * True if the response may be that of a gateway that handed the request on, and has nothing to tell of what became of it: any 5xx
     * that is not known to have another meaning, such as 502, 504, and those that are in no standard.
     */
    public boolean isGatewayError() {
        return status >= 500 && !NOT_OF_A_GATEWAY.contains(status) && !isReplayed() && !namesRefusal();
    }

    /** The refusal, if the response is an error that names one known to this version. */
    public Optional<Refusal> refusal() {
        if (status < 400) {
            return Optional.empty();
        }
        return values(IdempotenceHeaders.IDEMPOTENCY_REFUSAL).stream()
                .findFirst()
                .flatMap(Refusal::ofCode);
    }

    /** True if the response is an error that says it comes from the framework, in a word known to this version or not. */
    public boolean namesRefusal() {
        return status >= 400 && !values(IdempotenceHeaders.IDEMPOTENCY_REFUSAL).isEmpty();
    }

    public List<String> values(String header) {
        return HeaderLines.of(headers, header);
    }
}
