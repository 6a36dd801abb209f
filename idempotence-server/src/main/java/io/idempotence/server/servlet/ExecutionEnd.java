package io.idempotence.server.servlet;

import io.idempotence.internal.Causes;
import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Decision;
import io.idempotence.server.IdempotencePolicy.Verdict;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The end of an execution: its result is recorded, and only then its response leaves. Only the first call that ends it counts. The
 * application's error page may still replace the recorded result.
 */
final class ExecutionEnd {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    private final ClaimedExecution execution;
    private final FilterParts filter;
    private final Dispatches dispatches;
    private final HeldBody body;
    private final HandlerHeaders headers;
    private final ResponseEncoder encoder;
    private final ResponseBuffer buffer;
    private final HeldResponse response;

    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile boolean awaitsErrorPage;
    private volatile int recordedError;
    private volatile boolean gaveUp;

    ExecutionEnd(
            ClaimedExecution execution,
            FilterParts filter,
            Dispatches dispatches,
            HeldBody body,
            HttpServletResponse response) {
        this.execution = execution;
        this.filter = filter;
        this.dispatches = dispatches;
        this.body = body;
        this.headers = new HandlerHeaders(filter.config().keptHeaders());
        this.encoder = new ResponseEncoder(execution);
        this.buffer = newBuffer(body.memory());
        this.response = HeldResponse.first(response, buffer);
    }

    private ResponseBuffer newBuffer(MemoryBudget.Share memory) {
        BodyBuffer written = new BodyBuffer(filter.config().maxResponseBody(), memory);
        return new ResponseBuffer(written, headers, dispatches, this::gaveUp);
    }

    /** What the handler has written. */
    ResponseBuffer buffer() {
        return buffer;
    }

    /** The response that the handler writes to. */
    HeldResponse response() {
        return response;
    }

    /** Notes that the container ends the response of a handler that may still run. */
    void containerGaveUp() {
        gaveUp = true;
    }

    boolean gaveUp() {
        return gaveUp;
    }

    boolean hasEnded() {
        return ended.get();
    }

    /** Records the handler's response, then delivers it. Only the first call counts. */
    void finish() {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        Verdict byPolicy = Verdict.UNKNOWN;
        try {
            DeferredResponse deferred = buffer.deferred();
            byPolicy = byPolicy(deferred);
            if (deferred instanceof DeferredResponse.Failure) {
                body.keepForm(dispatches.container());
            }
            if (!sentInstead(record(byPolicy, deferred), buffer, response.target())) {
                send(buffer::deliver);
            }
        } catch (Throwable e) {
            // Perhaps the container recycled the response before its status was read.
            // An ended execution must not stay claimed.
            execution.finishWithoutResult(byPolicy);
            throw e;
        } finally {
            letGo();
        }
    }

    private Verdict byPolicy(@Nullable DeferredResponse deferred) {
        if (deferred != null && deferred.aborts()) {
            return Verdict.UNKNOWN;
        }
        int status = deferred instanceof DeferredResponse.Failure failure ? failure.status() : response.getStatus();
        // What another service has not done for now is not a business failure, whatever the status.
        boolean isRelayedRefusal = status >= 400 && buffer.relaysRefusal();
        Verdict byPolicy = execution.byStatus(isRelayedRefusal ? HttpServletResponse.SC_SERVICE_UNAVAILABLE : status);
        // The container responded in place of the handler, whose work may still run.
        return gaveUp && byPolicy == Verdict.RELEASE ? Verdict.UNKNOWN : byPolicy;
    }

    /** Ends an execution as unknown, because its handler may still run where this filter cannot see it. */
    void endUnseen() {
        withoutResponse(Verdict.UNKNOWN);
    }

    /** Ends an execution that gives no response. */
    void withoutResponse(Verdict verdict) {
        if (ended.compareAndSet(false, true)) {
            execution.finishWithoutResult(verdict);
        }
        closeBody();
    }

    private Optional<Decision.Substitute> record(Verdict byPolicy, @Nullable DeferredResponse deferred) {
        if (execution.verdict(byPolicy) != Verdict.KEEP || (deferred != null && deferred.aborts())) {
            return execution.finishWithoutResult(byPolicy);
        }
        if (deferred instanceof DeferredResponse.Failure failure) {
            return recordError(byPolicy, failure.status(), failure.message());
        }
        return execution.finish(byPolicy, encoder.result(buffer, deferred, response.getStatus()));
    }

    /** Records a failure. The container may render an error page of the application for it, and the caller then gets that page. */
    private Optional<Decision.Substitute> recordError(Verdict byPolicy, int status, @Nullable String message) {
        headers.atError(response.target());
        byte[] text = message == null ? new byte[0] : message.getBytes(StandardCharsets.UTF_8);
        byte[] error = new StoredResponse(StoredResponse.Form.ERROR, status, buffer.keptHeaders(), text).toBytes();
        recordedError = status;
        Optional<Decision.Substitute> instead = execution.finishProvisionally(byPolicy, error);
        awaitsErrorPage = instead.isEmpty();
        return instead;
    }

    /** Ends the execution of a handler that threw. Returns whether its caller has a response nevertheless. */
    boolean hasResponseDespite(Throwable thrown) {
        try {
            if (hasResponded()) {
                // The handler had finished its response before something failed.
                // The container would drop the response.
                LOG.error(
                        "An exception was thrown after the handler had closed its response; the response is kept",
                        thrown);
                finish();
                return true;
            }
            OptionalInt malformed = refusalOfParameters(thrown);
            if (malformed.isPresent() && !hasEnded() && !dispatches.asyncStarted() && !response.isCommitted()) {
                // The container would send the same status.
                response.sendError(malformed.getAsInt());
                finish();
                return true;
            }
            return failed(thrown);
        } catch (Throwable e) {
            // Perhaps the container recycled the response.
            endUnseen();
            thrown.addSuppressed(e);
            return false;
        }
    }

    /** Returns the status with which the container refuses malformed parameters, if that is why the handler failed. */
    private OptionalInt refusalOfParameters(Throwable thrown) {
        FormRules rules = FormRules.of(dispatches.container());
        return rules == null
                ? OptionalInt.empty()
                : Causes.of(thrown)
                        .mapToInt(rules::refusalOf)
                        .filter(status -> status > 0)
                        .findFirst();
    }

    private boolean mayStillRun() {
        return gaveUp || dispatches.asyncStarted();
    }

    private boolean hasBegunAKeptResponse() {
        return buffer.hasBegunAResponse() && execution.policy().ofStatus(response.getStatus()) == Verdict.KEEP;
    }

    /** Whether the handler has ended its response, or made one of a failure. */
    boolean hasEndedItself() {
        return buffer.isWhole() || response.getStatus() >= HttpServletResponse.SC_BAD_REQUEST;
    }

    private boolean hasResponded() {
        return !mayStillRun() && buffer.isWhole() && hasBegunAKeptResponse();
    }

    /** Ends the execution as failed. Returns whether the caller has a response nevertheless: that of the owner that overtook this one. */
    private boolean failed(Throwable exception) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        try {
            body.keepForm(dispatches.container());
            return endedInsteadOf(exception);
        } catch (Throwable e) {
            // Perhaps the container recycled the response. An ended execution must not stay claimed.
            execution.finishWithoutResult(Verdict.UNKNOWN);
            exception.addSuppressed(e);
            return false;
        } finally {
            letGo();
        }
    }

    private boolean endedInsteadOf(Throwable exception) {
        boolean stillRuns = mayStillRun();
        Verdict byPolicy = stillRuns || hasBegunAKeptResponse() ? Verdict.UNKNOWN : execution.byException(exception);
        Optional<Decision.Substitute> instead = execution.verdict(byPolicy) == Verdict.KEEP
                ? recordError(byPolicy, HttpServletResponse.SC_INTERNAL_SERVER_ERROR, null)
                : execution.finishWithoutResult(byPolicy);
        boolean sent = !stillRuns && sentInstead(instead, buffer, response.target());
        if (sent) {
            LOG.warn(
                    "The handler of a late owner failed; its caller gets the response of the owner that took over",
                    exception);
        }
        return sent;
    }

    /**
     * Settles the execution and closes the body. The filters in front return before an error page begins, and the container does not
     * announce one. So an execution that awaits one is settled later.
     */
    private void letGo() {
        if (awaitsErrorPage && (filter.seesRequestEnds() || isErrorWithPage())) {
            execution.settleSoon();
        } else {
            execution.settle();
        }
        closeBody();
    }

    private void closeBody() {
        body.close();
        if (!filter.seesRequestEnds()) {
            // Without request events, nothing shows when an error page has read the form.
            body.closeForm();
        }
    }

    // ---- the error page

    /** Called when the container begins another dispatch, which may be an error page. */
    void errorPageMayBegin() {
        if (awaitsErrorPage) {
            execution.hold();
            execution.settleSoon();
        }
        if (ended.get()) {
            body.resumeForm();
        }
    }

    /** Called when the container has ended the request, in Jetty the dispatch, which an error page may still follow. */
    void dispatchEnded() {
        if (awaitsErrorPage && !isErrorWithPage()) {
            execution.settle();
        }
        if (ended.get()) {
            body.closeForm();
        }
    }

    private boolean isErrorWithPage() {
        return filter.isErrorWithPage(recordedError);
    }

    /** Whether a filter in front shows an error page by a FORWARD dispatch, as that of a Spring Boot application in a WAR does. */
    boolean isForwardedErrorPage(HttpServletRequest arrived) {
        return awaitsErrorPage
                && arrived.getDispatcherType() == DispatcherType.FORWARD
                && arrived.getAttribute(RequestDispatcher.ERROR_STATUS_CODE) != null;
    }

    /** Runs the application's error page in an ERROR dispatch. If the error was recorded, the page replaces it. */
    void errorPage(FilterChain chain, HttpServletRequest arrived, HttpServletResponse response)
            throws IOException, ServletException {
        HttpServletRequest request = HeldRequest.ofErrorPage(arrived, body);
        if (!awaitsErrorPage()) {
            chain.doFilter(request, response);
            return;
        }
        awaitsErrorPage = false;
        execution.hold();
        filter.hasErrorPage(recordedError);
        try {
            renderErrorPage(chain, request, response);
        } finally {
            execution.settle();
        }
    }

    private boolean awaitsErrorPage() {
        if (buffer.passesThrough() && buffer.deferred() instanceof DeferredResponse.Failure) {
            // The error was sent in a dispatch that this filter did not see.
            finish();
        }
        return awaitsErrorPage;
    }

    private void renderErrorPage(FilterChain chain, HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        headers.atErrorPage(response);
        try (MemoryBudget.Share memory = body.memory().another()) {
            ResponseBuffer page = newBuffer(memory);
            // In Undertow the page is written to the response of the last dispatch.
            HeldResponse ended = HeldResponse.in(response, buffer);
            HttpServletResponse target = ended == null ? response : ended.target();
            HeldResponse held = HeldResponse.first(target, page);
            // In Tomcat, isAsyncStarted() stays true in a dispatch in which the handler has completed.
            boolean asyncBefore = request.isAsyncStarted();
            chain.doFilter(request, held);
            Optional<Decision.Substitute> instead = Optional.empty();
            if (page.deferred() == null && (asyncBefore || !request.isAsyncStarted())) {
                instead = execution.replace(encoder.written(page, held.getStatus()));
            } else if (page.deferred() == null) {
                // The page is written later, without this filter. The error itself stays recorded.
                page.stopHolding();
            }
            if (!sentInstead(instead, page, target)) {
                page.deliver();
            }
        }
    }

    /**
     * Sends the caller of a late owner the response that the other owner recorded, or the refusal that it would get now (T14). Returns
     * whether that was possible.
     */
    private boolean sentInstead(Optional<Decision.Substitute> instead, ResponseBuffer own, HttpServletResponse target) {
        if (instead.isEmpty() || own.streaming()) {
            return false;
        }
        StoredResponse replay =
                instead.get() instanceof Decision.Replay stored ? StoredResponse.ifReadable(stored.result()) : null;
        if (replay == null && instead.get() instanceof Decision.Replay) {
            return false;
        }
        return own.deliverInstead(() -> send(() -> sendInstead(replay, instead.get(), target)));
    }

    private void sendInstead(@Nullable StoredResponse replay, Decision.Substitute instead, HttpServletResponse target) {
        try {
            if (replay != null) {
                ReplayWriter.give(replay, target, false);
            } else if (instead instanceof Decision.Refuse refuse) {
                filter.problems().refuse(target, refuse.refusal(), refuse.retryAfter(), false);
            }
        } catch (IOException e) {
            LOG.warn("The response of the owner that took over could not be sent to the caller of a late owner", e);
        }
    }

    /** Sends a response. The filters in front may commit transactions then, such as that of a session, which the execution has no part in. */
    private void send(Runnable delivery) {
        Runnable enterAgain = execution.leave();
        try {
            delivery.run();
        } finally {
            enterAgain.run();
        }
    }
}
