package io.idempotence.server.servlet;

import io.idempotence.server.storage.Fingerprint;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.IOException;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/** What came with a request, read before its ID is claimed. Holds memory of the filter's budget until it is closed. */
final class RequestContent implements AutoCloseable {
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
     * Reads a request's body, or has the container parse it where it would.
     *
     * @throws RequestNotTakenException if it has more bytes than are allowed, or more than the budget has left
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
        // Jetty fails to say it once the stream is taken.
        String encoding = request.getCharacterEncoding();
        MultipartBody parts = MultipartBody.of(request);
        if (parts.parsed() != null) {
            Fingerprint fingerprint = RequestFingerprint.of(request, parts.parsed(), cap);
            if (fingerprint == null) {
                throw RequestNotTakenException.tooLarge();
            }
            memory.require(
                    parts.parsed().stream().mapToLong(RequestContent::memoryOf).sum());
            return new RequestContent(fingerprint, null, encoding, parts.parsed(), memory, ofParameters);
        }
        boolean isForm = MediaTypes.isForm(MediaTypes.of(request));
        FormRules rules = FormRules.of(request);
        if (isForm && rules == null) {
            // Nobody else can parse it as the container does.
            request.getParameterMap();
        }
        ServletInputStream in = request.getInputStream();
        boolean isChunked = request.getHeader("Transfer-Encoding") != null;
        boolean wasSent = declared > 0 || (isChunked && (in.isFinished() || isForm));
        byte[] body = RequestBody.read(in, declared, cap, memory);
        if (body.length > cap) {
            throw RequestNotTakenException.tooLarge();
        }
        if (body.length == 0 && wasSent) {
            parts.throwRefusal();
            return new RequestContent(ofConsumed(request), null, null, null, memory, ofParameters);
        }
        if (isForm && rules != null) {
            // The handler may ask for them.
            ofParameters.require(rules.memoryOfParameters(body, config.formLimits()));
        }
        return new RequestContent(
                RequestFingerprint.of(request, body, cap, config.bodyForm()),
                body,
                encoding,
                null,
                memory,
                ofParameters);
    }

    /** The container may have put a part on disk, and does not say so. Of a text there is a parameter as well, in characters. */
    private static long memoryOf(Part part) {
        return part.getSubmittedFileName() == null ? 3 * part.getSize() : part.getSize();
    }

    private static Fingerprint ofConsumed(HttpServletRequest request) {
        if (MediaTypes.isForm(MediaTypes.of(request))) {
            return RequestFingerprint.ofParameters(request);
        }
        throw new IllegalStateException(
                "a filter in front of the idempotence filter has read the request body, so that it cannot be"
                        + " compared; put the idempotence filter before it, or let it hand on a request that can be read again");
    }

    Fingerprint fingerprint() {
        return fingerprint;
    }

    /** Whether the container has parsed the body and serves it. */
    boolean isOfContainer() {
        return ofContainer;
    }

    /** The parts, if the container has parsed some. */
    @Nullable
    Collection<Part> parts() {
        return parts;
    }

    /** The body, if it is not the container's; empty once it was let go. */
    byte[] body() {
        return body;
    }

    /** The character encoding as it was before the body was read; null if none was set. */
    @Nullable
    String encoding() {
        return encoding;
    }

    /** What the request holds of the budget. */
    MemoryBudget.Share memory() {
        return memory;
    }

    /** Lets go of the body, and of parts that the container holds. Only for a request that never runs. */
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

    /** Its parameters are asked for again after {@link #close}. */
    void resumeParameters() {
        ofParameters.resume(memoryOfParameters);
    }

    /** Lets go of the body, not of its parameters. */
    void closeBody() {
        body = NOTHING;
        memory.close();
    }

    /** Lets go of everything. */
    @Override
    public void close() {
        closeBody();
        ofParameters.close();
    }
}
