package io.idempotence.it.server;

import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import java.io.IOException;

/** An {@link AsyncListener} whose methods do nothing unless a test overrides them. */
interface AsyncEnds extends AsyncListener {
    @Override
    default void onComplete(AsyncEvent event) throws IOException {}

    @Override
    default void onTimeout(AsyncEvent event) throws IOException {}

    @Override
    default void onError(AsyncEvent event) throws IOException {}

    @Override
    default void onStartAsync(AsyncEvent event) throws IOException {}
}
