package io.idempotence.server.servlet;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A warning, logged once, about a filter in front whose request does not return the form fields that the idempotence filter holds. */
final class BypassWarning {
    private static final Logger LOG = LoggerFactory.getLogger(BypassWarning.class);

    private final AtomicBoolean given = new AtomicBoolean();

    boolean isGiven() {
        return given.get();
    }

    void give(Class<?> wrapper) {
        if (given.compareAndSet(false, true)) {
            LOG.warn(
                    "A filter in front wraps the request in {}, which does not ask its superclass for parameters; the body is already"
                            + " read, so that handlers do not get the fields of forms; call super.getParameter, getParameterValues,"
                            + " getParameterNames and getParameterMap there, or put that filter behind the idempotence filter",
                    wrapper.getName());
        }
    }
}
