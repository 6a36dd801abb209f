package io.idempotence.it.container;

import jakarta.servlet.ServletContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.descriptor.web.ErrorPage;

/** Tomcat 11, or 10.1 with Servlet 6.0, which also speaks HTTP/2 without TLS. */
public final class TomcatServer implements ServletServer {
    private final Tomcat tomcat = new Tomcat();
    private final Path directory;

    private TomcatServer(Consumer<ServletContext> setup, String errorPage, boolean compressing)
            throws IOException, LifecycleException {
        directory = Files.createTempDirectory("tomcat");
        tomcat.setBaseDir(directory.toString());
        Connector connector = new Connector();
        connector.setProperty("address", "127.0.0.1");
        connector.setPort(0);
        connector.setAllowTrace(true);
        // A refused body beyond this resets the connection, and its caller may lose the response.
        connector.setProperty("maxSwallowSize", "-1");
        connector.setProperty("compression", compressing ? "on" : "off");
        connector.addUpgradeProtocol(new Http2Protocol());
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", null);
        context.addServletContainerInitializer((classes, servletContext) -> setup.accept(servletContext), Set.of());
        if (errorPage != null) {
            ErrorPage page = new ErrorPage();
            page.setLocation(errorPage);
            context.addErrorPage(page);
        }
        tomcat.start();
    }

    public static ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return start(setup, errorPage, false);
    }

    /** Starts one that compresses each response of some length for callers that take gzip. */
    public static ServletServer startCompressing(Consumer<ServletContext> setup, String errorPage) {
        return start(setup, errorPage, true);
    }

    private static ServletServer start(Consumer<ServletContext> setup, String errorPage, boolean compressing) {
        try {
            return new TomcatServer(setup, errorPage, compressing);
        } catch (IOException | LifecycleException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public int port() {
        return tomcat.getConnector().getLocalPort();
    }

    @Override
    public void close() {
        try {
            tomcat.stop();
            tomcat.destroy();
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        } catch (LifecycleException | IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
