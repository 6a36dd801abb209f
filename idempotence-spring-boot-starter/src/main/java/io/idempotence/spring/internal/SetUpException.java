package io.idempotence.spring.internal;

import org.jspecify.annotations.Nullable;

/** A fault in the set-up of an application, which fails its start with a description and an action. */
public final class SetUpException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String action;
    private final @Nullable String property;
    private final String value;

    private SetUpException(
            @Nullable String property, String value, String description, String action, @Nullable Throwable cause) {
        super(SpringDurations.within(description), cause);
        this.property = property;
        this.value = value;
        this.action = action;
    }

    /**
     * A fault.
     *
     * @param description what was found, in sentences
     * @param action how to fix it
     */
    public static SetUpException of(String description, String action) {
        return of(description, action, null);
    }

    /** A fault, as {@link #of(String, String)}, with its cause. */
    public static SetUpException of(String description, String action, @Nullable Throwable cause) {
        return new SetUpException(null, "", description, action, cause);
    }

    /**
     * The value of a property is not allowed.
     *
     * @param property its full name
     * @param value its value, shown unless somebody wrote it in another form
     * @param fault what is not allowed and what is, without a full stop at its end
     * @param action how to fix it
     */
    public static SetUpException ofProperty(
            String property, Object value, String fault, String action, @Nullable Throwable cause) {
        return new SetUpException(property, value.toString(), fault, action, cause);
    }

    /** How to fix it. */
    public String action() {
        return action;
    }

    /** The name of the property at fault, or null. */
    @Nullable
    String property() {
        return property;
    }

    String value() {
        return value;
    }
}
