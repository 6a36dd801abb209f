package io.idempotence.examples.snippets;

import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.servlet.annotation.WebListener;

/** The provider's side of the README. */
@WebListener
public final class ProviderSnippet implements ServletContextListener {
    // tag::snippet[]
    private final Idempotence idempotence = Idempotence.over(RedisIdempotenceStorage.connect("localhost:6379"));

    @Override
    public void contextInitialized(ServletContextEvent event) {
        IdempotenceFilter.install(event.getServletContext(), idempotence, "/payments/*"); // the one line
    }

    @Override
    public void contextDestroyed(ServletContextEvent event) {
        idempotence.close(); // after the last handler
    }
    // end::snippet[]
}
