package io.idempotence.spring.server;

import jakarta.servlet.ServletContext;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;
import org.springframework.util.unit.DataSize;

/**
 * The limits of forms that the application has set for its container, in the range of the filter.
 *
 * @param parameters null for the container's default
 * @param bytes null for the container's default
 */
record ContainerFormLimits(
        @Nullable Integer parameters, @Nullable Integer bytes) {
    private static final int MOST_PARAMETERS = 1_000_000;
    private static final int MOST_BYTES = 1 << 30;

    /** @param container null if it is unknown */
    static ContainerFormLimits of(@Nullable ServletContext container, Environment environment) {
        String server = container == null ? "" : String.valueOf(container.getServerInfo());
        Binder properties = Binder.get(environment);
        if (server.startsWith("Apache Tomcat")) {
            Integer parameters = number(properties, "server.tomcat.max-parameter-count");
            Long bytes = bytes(properties, "server.tomcat.max-http-form-post-size");
            // Tomcat takes a negative number as no limit. Boot does not pass on a size of 0.
            return new ContainerFormLimits(
                    parameters == null ? null : clipped(parameters, MOST_PARAMETERS),
                    bytes == null || bytes == 0 ? null : clipped(bytes, MOST_BYTES));
        }
        if (server.startsWith("jetty")) {
            Integer keys = number(properties, "server.jetty.max-form-keys");
            Long bytes = bytes(properties, "server.jetty.max-http-form-post-size");
            // Boot passes on positive numbers only.
            return new ContainerFormLimits(
                    keys == null || keys <= 0 ? null : clipped(keys, MOST_PARAMETERS),
                    bytes == null || bytes <= 0 ? null : clipped(bytes, MOST_BYTES));
        }
        return new ContainerFormLimits(null, null);
    }

    private static @Nullable Integer number(Binder properties, String name) {
        return properties.bind(name, Integer.class).orElse(null);
    }

    private static @Nullable Long bytes(Binder properties, String name) {
        return properties.bind(name, DataSize.class).map(DataSize::toBytes).orElse(null);
    }

    private static int clipped(long limit, int most) {
        return limit < 0 ? most : (int) Math.max(1, Math.min(limit, most));
    }
}
