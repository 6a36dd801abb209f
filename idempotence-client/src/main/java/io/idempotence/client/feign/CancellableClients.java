package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Client;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.internal.ThreadBound;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;
import javax.net.ssl.HostnameVerifier;
import javax.net.ssl.SSLSocketFactory;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies of Feign's HTTP clients whose exchanges can be cancelled from another thread. Each registers its connection or call with the current
 * {@link Watch} of the thread that sends. Any other client, or an unknown version of one of these, is used unchanged.
 */
final class CancellableClients {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);

    private CancellableClients() {}

    static Client of(Client client, ThreadBound<Watch> sending) {
        try {
            if (HttpClientTraits.isDefault(client)) {
                return DefaultClient.like(client, sending);
            }
            return switch (client.getClass().getName()) {
                case HttpClientTraits.OKHTTP -> CancellableOkHttp.like(client, sending);
                case HttpClientTraits.HC5 -> CancellableHc5.like(client, sending);
                case HttpClientTraits.JAVA11 -> CancellableHttp2.like(client, sending);
                default -> client;
            };
        } catch (ReflectiveOperationException | IllegalArgumentException e) {
            cannotCancel(client, e);
            return client;
        }
    }

    /** Only the clients for OkHttp and java.net.http have something to end. */
    @SuppressWarnings("unchecked") // the same class
    static <C> AsyncClient<C> of(AsyncClient<C> client, ThreadBound<Watch> sending) {
        try {
            return switch (client.getClass().getName()) {
                case HttpClientTraits.OKHTTP -> (AsyncClient<C>) CancellableOkHttp.like(client, sending);
                case HttpClientTraits.JAVA11 -> (AsyncClient<C>) CancellableHttp2.like(client, sending);
                default -> client;
            };
        } catch (ReflectiveOperationException e) {
            cannotCancel(client, e);
            return client;
        }
    }

    static void cannotCancel(Object client, Exception why) {
        LOG.warn(
                "{} has other fields than its known versions, so a request that its peer keeps open can outlast the"
                        + " deadline of its call, and no interrupt ends it; use a version that docs/feign.md lists, and set short"
                        + " timeouts",
                client.getClass().getName(),
                why);
    }

    @SuppressWarnings("deprecation") // The oldest Feign has it only under this name.
    private static final class DefaultClient extends Client.Default {
        private final ThreadBound<Watch> sending;

        private DefaultClient(
                @Nullable SSLSocketFactory sockets,
                @Nullable HostnameVerifier verifier,
                boolean streams,
                ThreadBound<Watch> sending) {
            super(sockets, verifier, streams);
            this.sending = sending;
        }

        static Client like(Client client, ThreadBound<Watch> sending) throws ReflectiveOperationException {
            return new DefaultClient(
                    (SSLSocketFactory) FeignInternals.field(client, client.getClass(), "sslContextFactory"),
                    (HostnameVerifier) FeignInternals.field(client, client.getClass(), "hostnameVerifier"),
                    HttpClientTraits.streams(client),
                    sending);
        }

        @Override
        public HttpURLConnection getConnection(URL url) throws IOException {
            HttpURLConnection connection = super.getConnection(url);
            Watch watch = sending.get();
            if (watch != null) {
                watch.exit(connection::disconnect);
            }
            return connection;
        }
    }
}
