package io.idempotence.it.container;

import jakarta.servlet.ServletContext;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** A container in which every rule must hold, in the version that fits the Servlet API of this virtual machine. */
public enum Container implements ServletServer.Starter {
    TOMCAT("Tomcat 11", "Tomcat 10.1", TomcatServer::start, TomcatServer::startCompressing),
    JETTY("Jetty 12.1", "Jetty 12.0", JettyServer::start, JettyServer::startCompressing),
    UNDERTOW(null, "Undertow 2.3", UndertowServer::start, UndertowServer::startCompressing);

    private final String with61;
    private final String with60;
    private final ServletServer.Starter starter;
    private final ServletServer.Starter compressing;

    Container(String with61, String with60, ServletServer.Starter starter, ServletServer.Starter compressing) {
        this.with61 = with61;
        this.with60 = with60;
        this.starter = starter;
        this.compressing = compressing;
    }

    /** Those that have a version for the Servlet API of this virtual machine. */
    public static List<Container> available() {
        return Stream.of(values()).filter(each -> each.title() != null).toList();
    }

    public String title() {
        return ServletServer.isServlet61() ? with61 : with60;
    }

    /** Starts one that compresses each response of some length for callers that take gzip. */
    public ServletServer.Starter compressing() {
        return compressing;
    }

    @Override
    public ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return starter.start(setup, errorPage);
    }
}
