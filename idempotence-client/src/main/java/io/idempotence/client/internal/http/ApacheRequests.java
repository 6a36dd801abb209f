package io.idempotence.client.internal.http;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A canceller of requests of Apache HttpClient 5. HttpClient itself closes the connection of a cancelled request once, and then forgets
 * it. It connects nevertheless if that connection had no socket yet, or if the host has a further address. All access is by reflection, because
 * this module does not depend on HttpClient, and HttpClient does not show the connection.
 */
public final class ApacheRequests {
    private final Class<?> exchange;
    private final Method isConnected;
    private final Method cancel;
    private final Method connectionOfEntry;
    private final Method socketOfConnection;

    /**
     * Finds the methods of HttpClient.
     *
     * @throws ReflectiveOperationException if this version of HttpClient does not have them
     */
    public ApacheRequests(@Nullable ClassLoader loader) throws ReflectiveOperationException {
        this.exchange = Class.forName("org.apache.hc.client5.http.classic.ExecRuntime", false, loader);
        this.isConnected = exchange.getMethod("isEndpointConnected");
        this.cancel = Class.forName("org.apache.hc.core5.concurrent.Cancellable", false, loader)
                .getMethod("cancel");
        this.connectionOfEntry = Class.forName("org.apache.hc.core5.pool.PoolEntry", false, loader)
                .getMethod("getConnection");
        this.socketOfConnection = Class.forName(
                        "org.apache.hc.client5.http.io.ManagedHttpClientConnection", false, loader)
                .getMethod("getSocket");
    }

    /** {@return what ends one request; a new one for each request} */
    public Exit exit() {
        return new Exit();
    }

    private static @Nullable Object call(Method method, Object target) {
        try {
            return method.invoke(target);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("a request of HttpClient cannot be cancelled", e);
        }
    }

    /** Ends one request. Thread-safe. */
    public final class Exit {
        private volatile @Nullable Connecting cancelled;

        private Exit() {}

        /**
         * Ends what the request waits for, if that can be ended now. Call it repeatedly. The request must first report that it is
         * cancelled, so that HttpClient opens no connection from then on.
         *
         * @param dependency what HttpClient gave to the request as its {@code Cancellable}: the lease of a connection, or the exchange
         */
        public void cancel(@Nullable Object dependency) {
            Connecting before = cancelled;
            if (before != null) {
                close(before);
            }
            if (dependency == null) {
                return;
            }
            if (exchange.isInstance(dependency)) {
                Connecting now = connecting(dependency);
                if (now != null) {
                    cancelled = now;
                } else if (Boolean.FALSE.equals(call(isConnected, dependency))) {
                    // It may get a socket, and then it can be cancelled.
                    return;
                }
            }
            call(cancel, dependency);
        }

        /** Returns the connection of an exchange. Null if it has none, or if that is not of the usual pool. */
        private @Nullable Connecting connecting(Object dependency) {
            try {
                Object endpoint = referenced(dependency, "endpointRef");
                Object entry = endpoint == null ? null : referenced(endpoint, "poolEntryRef");
                Object connection = entry == null ? null : call(connectionOfEntry, entry);
                return entry == null || connection == null ? null : new Connecting(entry, connection);
            } catch (ReflectiveOperationException | RuntimeException e) {
                return null;
            }
        }

        private static @Nullable Object referenced(Object owner, String name) throws ReflectiveOperationException {
            Field field = owner.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(owner) instanceof AtomicReference<?> reference ? reference.get() : null;
        }
    }

    /** Closes the socket of a connection, unless the connection went back to the pool, where the next call may use it. */
    private void close(Connecting cancelled) {
        if (call(connectionOfEntry, cancelled.entry) != cancelled.connection
                && call(socketOfConnection, cancelled.connection) instanceof Socket socket) {
            try {
                socket.close();
            } catch (IOException e) {
                throw new IllegalStateException("a socket cannot be closed", e);
            }
        }
    }

    /**
     * A connection that was cancelled, but that HttpClient may still connect to the next address of its host.
     *
     * @param entry its place in the pool
     */
    private record Connecting(Object entry, Object connection) {}
}
