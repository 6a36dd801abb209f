package io.idempotence.it.server;

import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;
import jakarta.servlet.ServletContext;
import java.util.function.Consumer;

/** The containers in which every rule must hold. */
enum Container implements ServletServer.Starter {
    JETTY(JettyServer::start),
    TOMCAT(TomcatServer::start);

    private final ServletServer.Starter starter;

    Container(ServletServer.Starter starter) {
        this.starter = starter;
    }

    @Override
    public ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return starter.start(setup, errorPage);
    }
}
