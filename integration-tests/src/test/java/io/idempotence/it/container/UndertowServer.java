package io.idempotence.it.container;

import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.HttpHandler;
import io.undertow.server.handlers.encoding.ContentEncodingRepository;
import io.undertow.server.handlers.encoding.EncodingHandler;
import io.undertow.server.handlers.encoding.GzipEncodingProvider;
import io.undertow.servlet.Servlets;
import io.undertow.servlet.api.DeploymentInfo;
import io.undertow.servlet.api.DeploymentManager;
import io.undertow.servlet.api.ServletContainerInitializerInfo;
import io.undertow.servlet.util.ImmediateInstanceFactory;
import jakarta.servlet.ServletContainerInitializer;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.function.Consumer;

/** Undertow 2.3 with Servlet 6.0, which also speaks HTTP/2 without TLS. */
public final class UndertowServer implements ServletServer {
    private final DeploymentManager deployment;
    private final Undertow undertow;

    private UndertowServer(Consumer<ServletContext> setup, String errorPage, boolean compressing) {
        ServletContainerInitializer initializer = (classes, context) -> setup.accept(context);
        DeploymentInfo application = Servlets.deployment()
                .setClassLoader(UndertowServer.class.getClassLoader())
                .setContextPath("/")
                .setDeploymentName("application")
                .addServletContainerInitializer(new ServletContainerInitializerInfo(
                        initializer.getClass(), new ImmediateInstanceFactory<>(initializer), Set.of()));
        if (errorPage != null) {
            application.addErrorPage(Servlets.errorPage(errorPage));
        }
        deployment = Servlets.newContainer().addDeployment(application);
        try {
            deployment.deploy();
            HttpHandler handler = deployment.start();
            undertow = Undertow.builder()
                    .setWorkerThreads(64)
                    .setServerOption(UndertowOptions.ENABLE_HTTP2, true)
                    .addHttpListener(0, "127.0.0.1", compressing ? compressing(handler) : handler)
                    .build();
        } catch (ServletException e) {
            throw new IllegalStateException(e);
        }
        undertow.start();
    }

    private static HttpHandler compressing(HttpHandler handler) {
        return new EncodingHandler(
                handler, new ContentEncodingRepository().addEncodingHandler("gzip", new GzipEncodingProvider(), 50));
    }

    public static ServletServer start(Consumer<ServletContext> setup, String errorPage) {
        return new UndertowServer(setup, errorPage, false);
    }

    /** Starts one that compresses each response for callers that take gzip. */
    public static ServletServer startCompressing(Consumer<ServletContext> setup, String errorPage) {
        return new UndertowServer(setup, errorPage, true);
    }

    @Override
    public int port() {
        return ((InetSocketAddress) undertow.getListenerInfo().get(0).getAddress()).getPort();
    }

    @Override
    public void close() {
        undertow.stop();
        try {
            deployment.stop();
        } catch (ServletException e) {
            throw new IllegalStateException(e);
        }
        deployment.undeploy();
    }
}
