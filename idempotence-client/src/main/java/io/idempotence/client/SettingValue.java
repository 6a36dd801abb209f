package io.idempotence.client;

/**
 * A value that was set, and its source.
 *
 * @param value of the setting's type
 * @param spelling the name as it is spelled in the source
 * @param source as in {@link IdempotenceClientConfigException#source()}
 */
record SettingValue(Object value, String spelling, String source) {
    /** The source of values that code has set. */
    static final String BUILDER = "builder";
}
