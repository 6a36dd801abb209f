package io.idempotence.spring.server;

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
    static Namespace of(@Nullable String given, Environment environment) {
        if (given != null) {
            return new Namespace(given, "idempotence.server.namespace");
        }
        String application = environment.getProperty("spring.application.name");
        return StringUtils.hasText(application)
                ? new Namespace(valid(application.trim()), "spring.application.name")
                : new Namespace("default", "no spring.application.name is set");
    }

    /** An application may have any name. Characters that a namespace cannot have become hyphens. */
    private static String valid(String application) {
        return application.replaceAll("[^A-Za-z0-9._-]", "-").replaceFirst("^[^A-Za-z0-9]+", "");
    }
}
