package io.idempotence.client;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/** A setting that is unknown or malformed, or contradicts another. The message contains the setting, its source and the fix. */
public final class IdempotenceClientConfigException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    private final String key;
    private final String source;

    IdempotenceClientConfigException(String key, String source, String message) {
        this(key, source, message, null);
    }

    IdempotenceClientConfigException(String key, String source, String message, @Nullable Throwable cause) {
        super(key + " (from " + source + "): " + message, cause);
        this.key = key;
        this.source = source;
    }

    /** {@return the setting as its source spells it, for example {@code IDEMPOTENCE_CLIENT_RETRY_WAIT}} */
    public String key() {
        return key;
    }

    /** {@return the file's address, {@code system property}, {@code environment variable}, {@code builder}, or what was passed to {@link
     * IdempotenceClientConfigBuilder#set}} */
    public String source() {
        return source;
    }
}
