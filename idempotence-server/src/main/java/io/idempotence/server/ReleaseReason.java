package io.idempotence.server;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The reason why an ID was released, so that its next attempt runs.
 *
 * @param kind who decided
 * @param status the response's status if the policy decided by it, else 0
 * @param exception the exception's class if the policy decided by it, else null
 */
public record ReleaseReason(Kind kind, int status, @Nullable Class<? extends Throwable> exception) {
    /** The one who decided. */
    public enum Kind {
        /** The handler, with {@link IdempotentExecution#release()}. */
        HANDLER,
        /** The handler or a storage, with {@link IdempotentExecution#overtaken()}: another execution took effect. */
        OVERTAKEN,
        /** The policy, by the status. */
        STATUS,
        /** The policy, by the exception. */
        EXCEPTION,
        /** The transport that runs the handler, for a reason of its own. */
        TRANSPORT
    }

    static final ReleaseReason BY_HANDLER = new ReleaseReason(Kind.HANDLER, 0, null);
    static final ReleaseReason OVERTAKEN = new ReleaseReason(Kind.OVERTAKEN, 0, null);
    static final ReleaseReason BY_TRANSPORT = new ReleaseReason(Kind.TRANSPORT, 0, null);

    static ReleaseReason ofStatus(int status) {
        return new ReleaseReason(Kind.STATUS, status, null);
    }

    static ReleaseReason ofException(Throwable exception) {
        return new ReleaseReason(Kind.EXCEPTION, 0, exception.getClass());
    }

    /**
     * A short form for logs and metrics, without the ID.
     *
     * @return {@code handler}, {@code overtaken}, {@code transport}, the status, or the exception's simple name
     */
    @Override
    public String toString() {
        return switch (kind) {
            case STATUS -> String.valueOf(status);
            case EXCEPTION -> exception == null ? "exception" : exception.getSimpleName();
            default -> kind.name().toLowerCase(Locale.ROOT);
        };
    }
}
