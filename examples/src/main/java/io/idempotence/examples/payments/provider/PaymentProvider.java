package io.idempotence.examples.payments.provider;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import java.time.Duration;
import org.eclipse.jetty.ee11.servlet.ServletContextHandler;
import org.eclipse.jetty.ee11.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.StatisticsHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** One running instance of the payment service, on a free port of this machine. Thread-safe. */
public final class PaymentProvider implements AutoCloseable {
    /** For the demo only: a request with this header is handled that many milliseconds later. */
    public static final String SLOW_HANDLER_HEADER = "Demo-Slow-Handler-Millis";

    private static final Duration LONGEST_HANDLER = Duration.ofSeconds(10);

    private final Server server;
    private final ServerConnector connector;
    private final StatisticsHandler statistics;

    private PaymentProvider(ServletContextHandler context, String instance) {
        QueuedThreadPool threads = new QueuedThreadPool(128, 4);
        threads.setName(instance);
        threads.setDaemon(true);
        server = new Server(threads);
        connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        connector.setAcceptQueueSize(256);
        server.addConnector(connector);
        statistics = new StatisticsHandler(context);
        server.setHandler(statistics);
        try {
            server.start();
        } catch (Exception e) {
            throw new IllegalStateException(instance + " could not start", e);
        }
    }

    /**
     * Starts an instance that makes a payment for every request it gets.
     *
     * @param instance its name
     * @param ledger where payments go
     * @return the running instance
     */
    public static PaymentProvider startPlain(String instance, Ledger ledger) {
        return new PaymentProvider(application(instance, ledger), instance);
    }

    /**
     * Starts an instance that makes one payment per idempotence ID.
     *
     * @param instance its name
     * @param ledger where payments go
     * @param idempotence remembers the IDs; not closed here
     * @return the running instance
     */
    public static PaymentProvider startProtected(String instance, Ledger ledger, Idempotence idempotence) {
        ServletContextHandler application = application(instance, ledger);
        application.addServletContainerInitializer((classes, context) ->
                // The one line that adds the server half.
                IdempotenceFilter.install(context, idempotence, "/payments/*"));
        return new PaymentProvider(application, instance);
    }

    private static ServletContextHandler application(String instance, Ledger ledger) {
        ServletContextHandler application = new ServletContextHandler("/");
        application.addServlet(new ServletHolder(new PaymentServlet(ledger, instance)), "/payments");
        return application;
    }

    /**
     * Where it listens.
     *
     * @return a port of 127.0.0.1
     */
    public int port() {
        return connector.getLocalPort();
    }

    /**
     * Waits until it has dealt with all requests that were sent to it, also with those whose senders are gone.
     *
     * @param requests how many were sent
     * @throws InterruptedException if interrupted
     * @throws IllegalStateException if that takes longer than any handler may
     */
    public void awaitHandled(int requests) throws InterruptedException {
        long end = System.nanoTime() + LONGEST_HANDLER.toNanos();
        while (statistics.getRequestTotal() < requests || statistics.getRequestsActive() > 0) {
            if (System.nanoTime() - end > 0) {
                throw new IllegalStateException("a provider was sent " + requests + " requests, got "
                        + statistics.getRequestTotal() + " and still handles " + statistics.getRequestsActive());
            }
            Thread.sleep(5);
        }
    }

    @Override
    public void close() {
        try {
            server.stop();
        } catch (Exception e) {
            throw new IllegalStateException("a provider did not stop", e);
        }
    }
}
