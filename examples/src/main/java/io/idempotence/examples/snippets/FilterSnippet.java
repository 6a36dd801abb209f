package io.idempotence.examples.snippets;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.ServletContext;

/** A filter with options of its own, of docs/server-configuration.md. */
public final class FilterSnippet {
    private FilterSnippet() {}

    static void install(Idempotence idempotence, ServletContext context) {
        // tag::snippet[]
        IdempotenceFilter.builder(idempotence).idOptional().build().install(context, "/orders/*");
        // end::snippet[]
    }
}
