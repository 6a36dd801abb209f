package io.idempotence.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.ServletContext;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Map;
import java.util.function.Consumer;
import org.eclipse.jetty.ee11.servlet.ServletContextHandler;
import org.eclipse.jetty.ee11.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandlerCollection;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** One Jetty with the same small handler in several applications, each behind a filter of its own or none. */
final class PaymentServer implements AutoCloseable {
    /** As many as Jetty and Tomcat have by default. They do not end: what a thread allocated is forgotten with it. */
    private static final int THREADS = 200;

    private final Server server;
    private final ServerConnector connector;

    private PaymentServer(Server server, ServerConnector connector) {
        this.server = server;
        this.connector = connector;
    }

    /** Starts it: each application is at {@code /<name>/payments}. */
    static PaymentServer start(Map<String, Consumer<ServletContext>> applications) throws Exception {
        QueuedThreadPool threads = new QueuedThreadPool(THREADS, THREADS);
        threads.setDaemon(true);
        Server server = new Server(threads);
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        // Connections are kept while others are measured.
        connector.setIdleTimeout(600_000);
        server.addConnector(connector);
        ContextHandlerCollection contexts = new ContextHandlerCollection();
        applications.forEach((name, setUp) -> {
            ServletContextHandler application = new ServletContextHandler("/" + name);
            application.addServlet(new ServletHolder(new PaymentServlet()), "/payments");
            application.addServletContainerInitializer((classes, context) -> setUp.accept(context));
            contexts.addHandler(application);
        });
        server.setHandler(contexts);
        server.start();
        return new PaymentServer(server, connector);
    }

    /** Puts a filter in front of everything. */
    static Consumer<ServletContext> behind(Filter filter) {
        return context -> context.addFilter("filter", filter).addMappingForUrlPatterns(null, true, "/*");
    }

    int port() {
        return connector.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        try {
            server.stop();
        } catch (Exception e) {
            throw new IOException("Jetty could not be stopped", e);
        }
    }

    /** Reads what it is sent and responds with 201. */
    private static final class PaymentServlet extends HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            // Not readAllBytes, which allocates 8 kB on a container's stream and the exact length on a held body.
            byte[] buffer = new byte[256];
            while (request.getInputStream().read(buffer) >= 0) {}
            response.setStatus(HttpServletResponse.SC_CREATED);
            response.setContentType("application/json");
            response.setHeader("Location", "/payments/7f3c2a19");
        }
    }
}
