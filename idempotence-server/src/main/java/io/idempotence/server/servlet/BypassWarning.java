package io.idempotence.server.servlet;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Warns once of a filter in front whose request gets past the forms that the idempotence filter holds. */
final class BypassWarning {
    private static final Logger LOG = LoggerFactory.getLogger(BypassWarning.class);

    private final AtomicBoolean given = new AtomicBoolean();

    boolean isGiven() {
        return given.get();
    }

    void give(Class<?> wrapper) {
        if (given.compareAndSet(false, true)) {
            LOG.warn(
                    "The request of a filter in front, {}, does not ask its superclass for parameters, and the body that the container"
                            + " would parse is read: handlers do not get the fields of a form; call super.getParameter and its"
                            + " relatives there, or put that filter behind the idempotence filter",
                    wrapper.getName());
        }
    }
}
