package io.idempotence.spring.server;

import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.springframework.core.env.Environment;
import org.springframework.util.StringUtils;

/**
 * The name of the service in its storage.
 *
 * @param name the name
 * @param reason where it comes from, for the log
 */
record Namespace(String name, String reason) {
    private static final int LONGEST = 64;

    static Namespace of(@Nullable String given, Environment environment) {
        if (given != null) {
            return new Namespace(given, "idempotence.server.namespace");
        }
        String application = environment.getProperty("spring.application.name");
        return StringUtils.hasText(application)
                ? new Namespace(valid(application.trim()), "spring.application.name")
                : new Namespace("default", "no spring.application.name is set");
    }

    /** An application may have any name. If a namespace cannot have a character of it, a hash keeps services apart. */
    private static String valid(String application) {
        String readable = application.replaceAll("[^A-Za-z0-9._-]", "-").replaceFirst("^[^A-Za-z0-9]+", "");
        if (readable.equals(application) && readable.length() <= LONGEST) {
            return readable;
        }
        String hash = UUID.nameUUIDFromBytes(application.getBytes(StandardCharsets.UTF_8))
                .toString()
                .substring(0, 8);
        String kept = readable.substring(0, Math.min(readable.length(), LONGEST - 1 - hash.length()));
        return kept.isEmpty() ? hash : kept + "-" + hash;
    }
}
