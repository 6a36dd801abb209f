package io.idempotence.it.container;

import jakarta.servlet.ServletContext;
import java.util.function.Consumer;
import org.eclipse.jetty.ee11.servlet.ErrorPageErrorHandler;
import org.eclipse.jetty.ee11.servlet.ServletContextHandler;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.gzip.GzipHandler;

/** Jetty 12.1, which also speaks HTTP/2 without TLS. */
public final class JettyServer implements ServletServer {
    private final Server server = new Server();
    private final HttpConfiguration http = new HttpConfiguration();
    private final ServerConnector connector =
            new ServerConnector(server, new HttpConnectionFactory(http), new HTTP2CServerConnectionFactory(http));

    @SuppressWarnings("removal") // The successor of GzipHandler is in an artifact of its own.
    private JettyServer(Consumer<ServletContext> setup, String errorPage, boolean compressing) {
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        ServletContextHandler context = new ServletContextHandler("/");
        if (errorPage != null) {
            ErrorPageErrorHandler errors = new ErrorPageErrorHandler();
            errors.addErrorPage(ErrorPageErrorHandler.GLOBAL_ERROR_PAGE, errorPage);
            context.setErrorHandler(errors);
        }
        context.addServletContainerInitializer((classes, servletContext) -> setup.accept(servletContext));
        server.setHandler(context);
        if (compressing) {
            GzipHandler gzip = new GzipHandler();
            gzip.addIncludedMethods("POST");
            server.insertHandler(gzip);
        }
        try {
            server.start();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    public static ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return new JettyServer(setup, errorPage, false);
    }

    /** Starts one that compresses each answer of some length for callers that take gzip. */
    public static ServletServer startCompressing(Consumer<ServletContext> setup, String errorPage) {
        return new JettyServer(setup, errorPage, true);
    }

    @Override
    public int port() {
        return connector.getLocalPort();
    }

    @Override
    public void close() {
        try {
            server.stop();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
