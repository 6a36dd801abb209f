package io.idempotence.server.servlet;

import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import java.util.Optional;

/** Tells a protected request when an error page can no longer come. */
final class RequestEnds implements ServletRequestListener {
    @Override
    public void requestInitialized(ServletRequestEvent event) {
        protectedRequest(event).ifPresent(ProtectedRequest::dispatchBegins);
    }

    @Override
    public void requestDestroyed(ServletRequestEvent event) {
        protectedRequest(event).ifPresent(ProtectedRequest::dispatchesEnded);
    }

    private static Optional<ProtectedRequest> protectedRequest(ServletRequestEvent event) {
        return Optional.ofNullable(ProtectedRequest.of(event.getServletRequest()));
    }
}
