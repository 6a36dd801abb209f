package io.idempotence.server.servlet;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The warning of a filter in front whose request does not return the form fields that are held. Logged once. Thread-safe. */
final class BypassWarning {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    private final AtomicBoolean logged = new AtomicBoolean();

    boolean isLogged() {
        return logged.get();
    }

    /** @param wrapper the class of the request that the filter in front passes on */
    void log(Class<?> wrapper) {
        if (logged.compareAndSet(false, true)) {
            LOG.warn(
                    "A filter in front wraps the request in {}, which does not get parameters from its superclass; the body is already"
                            + " read, so that handlers do not get the fields of forms; call super.getParameter, getParameterValues,"
                            + " getParameterNames and getParameterMap there, or put that filter behind the idempotence filter",
                    wrapper.getName());
        }
    }
}
