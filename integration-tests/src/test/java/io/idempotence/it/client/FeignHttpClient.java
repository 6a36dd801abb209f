package io.idempotence.it.client;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.hc5.ApacheHttp5Client;
import feign.hc5.AsyncApacheHttp5Client;
import feign.http2client.Http2Client;
import feign.okhttp.OkHttpClient;
import io.idempotence.it.wire.TestTls;
import java.io.IOException;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.net.ssl.SSLContext;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.client5.http.ssl.DefaultClientTlsStrategy;
import org.apache.hc.client5.http.ssl.NoopHostnameVerifier;
import org.jspecify.annotations.Nullable;

/** The HTTP clients that Feign runs over and that are supported, each as its users build it. */
enum FeignHttpClient {
    DEFAULT {
        @Override
        Running start(@Nullable SSLContext tls) {
            return new Running(Feign.builder().client(overUrlConnection(tls)), () -> {});
        }
    },
    OKHTTP {
        @Override
        Running start(@Nullable SSLContext tls) {
            okhttp3.OkHttpClient client = okHttp(tls);
            return new Running(Feign.builder().client(new OkHttpClient(client)), () -> stop(client));
        }
    },
    HC5 {
        @Override
        Running start(@Nullable SSLContext tls) {
            CloseableHttpClient client = HttpClientBuilder.create()
                    .disableAutomaticRetries()
                    .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                            .setTlsSocketStrategy(tls == null ? null : trusting(tls))
                            .build())
                    .build();
            return new Running(Feign.builder().client(new ApacheHttp5Client(client)), client::close);
        }
    },
    JAVA11 {
        @Override
        Running start(@Nullable SSLContext tls) {
            return new Running(Feign.builder().client(java11(tls)), () -> {});
        }
    },
    ASYNC_DEFAULT {
        @Override
        Running start(@Nullable SSLContext tls) {
            ExecutorService threads = Executors.newCachedThreadPool();
            return new Running(
                    AsyncFeign.builder().client(new AsyncClient.Default<>(overUrlConnection(tls), threads)),
                    threads::shutdownNow);
        }
    },
    ASYNC_OKHTTP {
        @Override
        Running start(@Nullable SSLContext tls) {
            okhttp3.OkHttpClient client = okHttp(tls);
            return new Running(AsyncFeign.builder().client(new OkHttpClient(client)), () -> stop(client));
        }
    },
    ASYNC_HC5 {
        @Override
        Running start(@Nullable SSLContext tls) {
            CloseableHttpAsyncClient client = HttpAsyncClients.custom()
                    .disableAutomaticRetries()
                    .setConnectionManager(PoolingAsyncClientConnectionManagerBuilder.create()
                            .setTlsStrategy(tls == null ? null : trusting(tls))
                            .build())
                    .build();
            client.start();
            return new Running(
                    AsyncFeign.<HttpClientContext>builder().client(new AsyncApacheHttp5Client(client)), client::close);
        }
    },
    ASYNC_JAVA11 {
        @Override
        Running start(@Nullable SSLContext tls) {
            return new Running(AsyncFeign.builder().client(java11(tls)), () -> {});
        }
    };

    /** The connect timeout of those that have one for all their requests. */
    static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(60);

    final Running start() {
        return start(null);
    }

    /** @param tls with any certificate of the server; null for that of the JDK */
    abstract Running start(@Nullable SSLContext tls);

    boolean isAsync() {
        return name().startsWith("ASYNC");
    }

    /** A response whose headers were cut is a failure, and not one with fewer headers. */
    boolean reportsCutHeaders() {
        return this == OKHTTP || this == ASYNC_OKHTTP || this == JAVA11 || this == ASYNC_JAVA11;
    }

    String title() {
        return switch (this) {
            case DEFAULT -> "`Client.Default`";
            case OKHTTP -> "`OkHttpClient`";
            case HC5 -> "`ApacheHttp5Client`";
            case JAVA11 -> "`Http2Client`";
            case ASYNC_DEFAULT -> "`AsyncClient.Default`";
            case ASYNC_OKHTTP -> "`OkHttpClient`, asynchronous";
            case ASYNC_HC5 -> "`AsyncApacheHttp5Client`";
            case ASYNC_JAVA11 -> "`Http2Client`, asynchronous";
        };
    }

    private static Client overUrlConnection(@Nullable SSLContext tls) {
        return tls == null
                ? new Client.Default(null, null)
                : new Client.Default(tls.getSocketFactory(), (host, session) -> true);
    }

    private static okhttp3.OkHttpClient okHttp(@Nullable SSLContext tls) {
        return tls == null
                ? new okhttp3.OkHttpClient()
                : new okhttp3.OkHttpClient.Builder()
                        .sslSocketFactory(tls.getSocketFactory(), TestTls.trustingAll())
                        .hostnameVerifier((host, session) -> true)
                        .build();
    }

    private static DefaultClientTlsStrategy trusting(SSLContext tls) {
        return new DefaultClientTlsStrategy(tls, NoopHostnameVerifier.INSTANCE);
    }

    /** Feign makes another one for a request that follows redirects, or has another connect timeout. */
    private static Http2Client java11(@Nullable SSLContext tls) {
        return tls == null
                ? new Http2Client()
                : new Http2Client(HttpClient.newBuilder()
                        .sslContext(tls)
                        .connectTimeout(CONNECT_TIMEOUT)
                        .followRedirects(HttpClient.Redirect.NEVER)
                        .build());
    }

    private static void stop(okhttp3.OkHttpClient client) {
        client.dispatcher().cancelAll();
        client.dispatcher().executorService().shutdown();
        client.connectionPool().evictAll();
    }

    /** One of them, and how it ends. */
    record Running(BaseBuilder<?, ?> builder, Stop stop) implements AutoCloseable {
        interface Stop {
            void run() throws IOException;
        }

        @Override
        public void close() throws IOException {
            stop.run();
        }
    }
}
