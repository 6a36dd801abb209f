package io.idempotence.client;

/**
 * A value that somebody gave, and where.
 *
 * @param value of the key's type
 * @param spelling the key as it stands there
 * @param source as in {@link IdempotenceConfigException#source()}
 */
record Setting(Object value, String spelling, String source) {
    /** The source of what code set. */
    static final String BUILDER = "builder";
}
