package io.idempotence.server.servlet;

import io.idempotence.internal.Causes;
import io.idempotence.server.storage.Fingerprint;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.IOException;
import java.util.Collection;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The content of a request, read before its ID is claimed. It holds memory of the filter's budget until it is closed. */
final class RequestContent implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);
    private static final byte[] NOTHING = {};

    private final Fingerprint fingerprint;
    private final MemoryBudget.Share memory;
    private final MemoryBudget.Share ofParameters;
    private final long memoryOfParameters;
    private final @Nullable String encoding;
    private final @Nullable Collection<Part> parts;
    private final boolean ofContainer;
    private volatile byte[] body;

    private RequestContent(
            Fingerprint fingerprint,
            byte @Nullable [] body,
            @Nullable String encoding,
            @Nullable Collection<Part> parts,
            MemoryBudget.Share memory,
            MemoryBudget.Share ofParameters) {
        this.fingerprint = fingerprint;
        this.ofContainer = body == null;
        this.body = body == null ? NOTHING : body;
        this.encoding = encoding;
        this.parts = parts;
        this.memory = memory;
        this.ofParameters = ofParameters;
        this.memoryOfParameters = ofParameters.held();
    }

    /**
     * Reads a request's body, or has the container parse it if the container would.
     *
     * @throws RequestNotTakenException if the request has more bytes than are allowed, or more than the budget has left
     * @throws IllegalStateException if a filter in front has read the body, so that it cannot be compared
     */
    static RequestContent of(HttpServletRequest request, FilterConfiguration config, MemoryBudget budget)
            throws IOException, ServletException, RequestNotTakenException {
        MemoryBudget.Share memory = budget.share();
        MemoryBudget.Share ofParameters = budget.share();
        try {
            return of(request, config, memory, ofParameters);
        } catch (Throwable e) {
            memory.close();
            ofParameters.close();
            throw e;
        }
    }

    private static RequestContent of(
            HttpServletRequest request,
            FilterConfiguration config,
            MemoryBudget.Share memory,
            MemoryBudget.Share ofParameters)
            throws IOException, ServletException, RequestNotTakenException {
        int cap = config.maxRequestBody();
        long declared = request.getContentLengthLong();
        if (declared > cap) {
            throw RequestNotTakenException.tooLarge();
        }
        // In Jetty this call fails once the stream was taken.
        String encoding = request.getCharacterEncoding();
        String contentType = MediaTypes.of(request);
        MultipartBody parts = MultipartBody.of(request, contentType);
        if (parts.parsed() != null) {
            Fingerprint fingerprint = RequestFingerprint.of(request, parts.parsed(), cap);
            if (fingerprint == null) {
                throw RequestNotTakenException.tooLarge();
            }
            memory.require(
                    parts.parsed().stream().mapToLong(RequestContent::memoryOf).sum());
            return new RequestContent(fingerprint, null, encoding, parts.parsed(), memory, ofParameters);
        }
        boolean isForm = MediaTypes.isForm(contentType);
        FormRules rules = FormRules.of(request);
        if (isForm && rules == null) {
            // Only the container can parse this form by its rules.
            request.getParameterMap();
        }
        ServletInputStream in = request.getInputStream();
        boolean isChunked = request.getHeader("Transfer-Encoding") != null;
        // A body that a filter in front serves again may be finished because it is empty.
        boolean wasSent = declared > 0 || (isChunked && in.isFinished() && !Wrappers.serveBody(request));
        byte[] body = memory.read(in, declared, cap);
        if (body.length > cap) {
            throw RequestNotTakenException.tooLarge();
        }
        // Over HTTP/2 a body needs neither header.
        // A form without a body has no parameters to compare, so it may count as one with a body.
        if (body.length == 0 && (wasSent || (isForm && declared < 0))) {
            parts.throwRefusal();
            return new RequestContent(ofConsumed(request, isForm, wasSent), null, null, null, memory, ofParameters);
        }
        if (isForm && rules != null) {
            // The handler may read the parameters.
            ofParameters.require(rules.memoryOfParameters(body, config.formLimits()));
        }
        return new RequestContent(
                RequestFingerprint.of(request, contentType, body, cap, config.bodyComparison(), memory),
                body,
                encoding,
                null,
                memory,
                ofParameters);
    }

    /**
     * Returns the memory that a part counts. The container does not report which parts it has put on disk. A text is also a parameter, in
     * characters.
     */
    private static long memoryOf(Part part) {
        return part.getSubmittedFileName() == null ? 3 * part.getSize() : part.getSize();
    }

    /** @param wasSent whether the body certainly had bytes */
    private static Fingerprint ofConsumed(HttpServletRequest request, boolean isForm, boolean wasSent) {
        if (isForm && (!wasSent || hasMoreParametersThanQuery(request))) {
            return RequestFingerprint.ofParameters(request);
        }
        throw new IllegalStateException(
                "the request body cannot be compared: it is multipart and has no parts, or a filter in front of the idempotence filter"
                        + " has read it; put the idempotence filter before that filter, or let that filter pass on a request that can be"
                        + " read again");
    }

    /** Whether somebody has parsed a form. If a filter in front has read it as a stream, only the parameters of the query are left. */
    private static boolean hasMoreParametersThanQuery(HttpServletRequest request) {
        int parameters = request.getParameterMap().values().stream()
                .mapToInt(values -> values.length)
                .sum();
        String query = request.getQueryString();
        long ofQuery = query == null
                ? 0
                : Stream.of(query.split("&")).filter(pair -> !pair.isEmpty()).count();
        return parameters > ofQuery;
    }

    Fingerprint fingerprint() {
        return fingerprint;
    }

    /** Whether the container has parsed the body and serves it. */
    boolean isOfContainer() {
        return ofContainer;
    }

    /** The parts that the container has parsed; null if there are none. */
    @Nullable
    Collection<Part> parts() {
        return parts;
    }

    /** The body, if it is not the container's; empty after it was closed. */
    byte[] body() {
        return body;
    }

    /** The character encoding as it was before the body was read; null if none was set. */
    @Nullable
    String encoding() {
        return encoding;
    }

    /** The share of the budget that the request holds. */
    MemoryBudget.Share memory() {
        return memory;
    }

    /** Drops the body, and parts that the container holds. Only for a request that never runs. */
    void discard() {
        close();
        if (parts != null) {
            for (Part part : parts) {
                try {
                    part.delete();
                } catch (IOException ignoredTheContainerDeletesItAtTheEnd) {
                    return;
                }
            }
        }
    }

    /** Counts the parameters again after {@link #close}, because they may be read again. */
    void resumeParameters() {
        ofParameters.resume(memoryOfParameters);
    }

    /** Drops the body, but not its parameters. */
    void closeBody() {
        body = NOTHING;
        memory.close();
    }

    /** Drops the body and its parameters. */
    @Override
    public void close() {
        closeBody();
        ofParameters.close();
    }

    /**
     * The parts of a multipart request, if its servlet has the container parse them. A container parses them before the body is read, or
     * never.
     *
     * @param parsed null if there are none
     * @param refusal the container's exception instead: the servlet has no multipart configuration, or the parts are too large. Both are an
     *     IllegalStateException (Servlet 6, getParts). After the second one the body is consumed
     */
    private record MultipartBody(
            @Nullable Collection<Part> parsed, @Nullable Exception refusal) {
        private static final MultipartBody NONE = new MultipartBody(null, null);

        /** @param contentType the request's, null if it has none */
        static MultipartBody of(HttpServletRequest request, @Nullable String contentType)
                throws IOException, ServletException {
            if (!"multipart/form-data".equals(MediaTypes.withoutParameters(contentType))) {
                return NONE;
            }
            try {
                Collection<Part> parts = request.getParts();
                // Empty if the container has not parsed the body, or if a filter in front has read it.
                return parts.isEmpty() && !isWithoutParts(request.getContentLengthLong(), contentType)
                        ? NONE
                        : new MultipartBody(parts, null);
            } catch (IllegalStateException | ServletException e) {
                // Jetty wraps the IllegalStateException.
                if (!Causes.has(e, IllegalStateException.class)) {
                    throw e;
                }
                LOG.debug(
                        "the servlet has no multipart configuration and reads the body itself, or the parts are too large",
                        e);
                return new MultipartBody(null, e);
            }
        }

        /** Whether a body of this length ends where its first part would begin: a delimiter with hyphens around it, and perhaps a line end. */
        private static boolean isWithoutParts(long length, @Nullable String contentType) {
            String boundary = MediaTypes.boundary(contentType);
            return boundary != null && (length == boundary.length() + 4L || length == boundary.length() + 6L);
        }

        /** Throws the container's exception, as without this filter, because the body is consumed. */
        void throwRefusal() throws ServletException {
            if (refusal instanceof RuntimeException e) {
                throw e;
            }
            if (refusal instanceof ServletException e) {
                throw e;
            }
        }
    }
}
