package io.idempotence.it.container;

import jakarta.servlet.ServletContext;
import java.util.function.Consumer;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandler;
import org.eclipse.jetty.server.handler.gzip.GzipHandler;

/** Jetty 12.1, or 12.0 with Servlet 6.0, which also speaks HTTP/2 without TLS. */
public final class JettyServer implements ServletServer {
    private final Server server = new Server();
    private final HttpConfiguration http = new HttpConfiguration();
    private final ServerConnector connector =
            new ServerConnector(server, new HttpConnectionFactory(http), new HTTP2CServerConnectionFactory(http));

    @SuppressWarnings("removal") // The successor of GzipHandler is in an artifact of its own.
    private JettyServer(Consumer<ServletContext> setup, String errorPage, boolean compressing) {
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(
                ServletServer.isServlet61() ? Ee11.application(setup, errorPage) : Ee10.application(setup, errorPage));
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

    /** Loaded with Servlet 6.1 only. */
    private static final class Ee11 {
        static ContextHandler application(Consumer<ServletContext> setup, String errorPage) {
            var context = new org.eclipse.jetty.ee11.servlet.ServletContextHandler("/", true, false);
            if (errorPage != null) {
                var errors = new org.eclipse.jetty.ee11.servlet.ErrorPageErrorHandler();
                errors.addErrorPage(org.eclipse.jetty.ee11.servlet.ErrorPageErrorHandler.GLOBAL_ERROR_PAGE, errorPage);
                context.setErrorHandler(errors);
            }
            context.addServletContainerInitializer((classes, servletContext) -> setup.accept(servletContext));
            return context;
        }
    }

    /** Loaded with Servlet 6.0 only. */
    private static final class Ee10 {
        static ContextHandler application(Consumer<ServletContext> setup, String errorPage) {
            var context = new org.eclipse.jetty.ee10.servlet.ServletContextHandler("/", true, false);
            if (errorPage != null) {
                var errors = new org.eclipse.jetty.ee10.servlet.ErrorPageErrorHandler();
                errors.addErrorPage(org.eclipse.jetty.ee10.servlet.ErrorPageErrorHandler.GLOBAL_ERROR_PAGE, errorPage);
                context.setErrorHandler(errors);
            }
            context.addServletContainerInitializer((classes, servletContext) -> setup.accept(servletContext));
            return context;
        }
    }

    public static ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return new JettyServer(setup, errorPage, false);
    }

    /** Starts one that compresses each response of some length for callers that take gzip. */
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
