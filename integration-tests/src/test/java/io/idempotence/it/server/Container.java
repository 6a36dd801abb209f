package io.idempotence.it.server;

import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;
import jakarta.servlet.ServletContext;
import java.util.function.Consumer;

/** The containers in which every rule must hold. */
enum Container implements ServletServer.Starter {
    JETTY(JettyServer::start, JettyServer::startCompressing),
    TOMCAT(TomcatServer::start, TomcatServer::startCompressing);

    private final ServletServer.Starter starter;
    private final ServletServer.Starter compressing;

    Container(ServletServer.Starter starter, ServletServer.Starter compressing) {
        this.starter = starter;
        this.compressing = compressing;
    }

    ServletServer.Starter compressing() {
        return compressing;
    }

    @Override
    public ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return starter.start(setup, errorPage);
    }
}
