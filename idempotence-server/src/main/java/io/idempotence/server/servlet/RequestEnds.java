package io.idempotence.server.servlet;

import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import java.util.Optional;

/** A listener that notifies a protected request when another dispatch begins, and when no error page can follow any more. */
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
