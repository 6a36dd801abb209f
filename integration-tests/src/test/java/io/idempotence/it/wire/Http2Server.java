package io.idempotence.it.wire;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.ToIntFunction;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.http.MetaData;
import org.eclipse.jetty.http2.api.Stream;
import org.eclipse.jetty.http2.api.server.ServerSessionListener;
import org.eclipse.jetty.http2.frames.HeadersFrame;
import org.eclipse.jetty.http2.frames.ResetFrame;
import org.eclipse.jetty.http2.server.RawHTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/**
 * A loopback server of HTTP/2 without TLS. It reads each request to its end, and then does what its plan says:
 * it responds with 200, resets the stream or stays silent.
 */
public final class Http2Server implements AutoCloseable {
    /** Respond. */
    public static final int RESPOND = -1;

    /** Leave the stream open, without a response. */
    public static final int STAY_SILENT = -2;

    private final Server server = new Server();
    private final List<HttpFields> requests = new CopyOnWriteArrayList<>();
    private final ToIntFunction<HttpFields> plan;
    private final ServerConnector connector;

    private Http2Server(ToIntFunction<HttpFields> plan) {
        this.plan = plan;
        this.connector = new ServerConnector(
                server, new RawHTTP2ServerConnectionFactory(new HttpConfiguration(), new ServerSessionListener() {
                    @Override
                    public Stream.Listener onNewStream(Stream stream, HeadersFrame frame) {
                        return opened(stream, frame);
                    }
                }));
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
    }

    /** @param plan the error code of the reset for a request with these headers, {@link #RESPOND} or {@link #STAY_SILENT} */
    public static Http2Server start(ToIntFunction<HttpFields> plan) {
        Http2Server http2 = new Http2Server(plan);
        try {
            http2.server.start();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        return http2;
    }

    public String url() {
        return "http://127.0.0.1:" + connector.getLocalPort();
    }

    /** The headers of what came in. */
    public List<HttpFields> requests() {
        return requests;
    }

    /** The values of a header in what came in, each once; "null" where there is none. */
    public List<String> values(String header) {
        return requests.stream()
                .map(headers -> String.valueOf(headers.get(header)))
                .distinct()
                .toList();
    }

    private Stream.Listener opened(Stream stream, HeadersFrame frame) {
        HttpFields headers = frame.getMetaData().getHttpFields();
        requests.add(headers);
        if (frame.isEndStream()) {
            end(stream, headers);
            return null;
        }
        stream.demand();
        return new Stream.Listener() {
            @Override
            public void onDataAvailable(Stream ready) {
                Stream.Data data = ready.readData();
                boolean last = data != null && data.frame().isEndStream();
                if (data != null) {
                    data.release();
                }
                if (last) {
                    end(ready, headers);
                } else {
                    ready.demand();
                }
            }
        };
    }

    private void end(Stream stream, HttpFields headers) {
        int error = plan.applyAsInt(headers);
        if (error == STAY_SILENT) {
            return;
        }
        if (error != RESPOND) {
            stream.reset(new ResetFrame(stream.getId(), error), Callback.NOOP);
            return;
        }
        MetaData.Response ok = new MetaData.Response(200, null, HttpVersion.HTTP_2, HttpFields.EMPTY);
        stream.headers(new HeadersFrame(stream.getId(), ok, null, true), Callback.NOOP);
    }

    @Override
    public void close() {
        try {
            server.stop();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
