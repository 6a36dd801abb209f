package io.idempotence.spring.client;

/** The attributes of a request with which the application describes its call. {@link IdempotentRestClient} has them for users. */
final class CallAttributes {
    /** The client's name, a {@code String}. */
    static final String CLIENT = "io.idempotence.client";

    /** The method's name in settings, a {@code String}. */
    static final String METHOD = "io.idempotence.method";

    /** Whether the call carries an ID, a {@code Boolean}. */
    static final String IDEMPOTENT = "io.idempotence.idempotent";

    private CallAttributes() {}
}
