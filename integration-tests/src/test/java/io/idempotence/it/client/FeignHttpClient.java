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
import java.io.IOException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.protocol.HttpClientContext;

/** The HTTP clients that Feign runs over and that are supported, each as its users build it. */
enum FeignHttpClient {
    DEFAULT {
        @Override
        Running start() {
            return new Running(Feign.builder().client(new Client.Default(null, null)), () -> {});
        }
    },
    OKHTTP {
        @Override
        Running start() {
            okhttp3.OkHttpClient client = new okhttp3.OkHttpClient();
            return new Running(Feign.builder().client(new OkHttpClient(client)), () -> stop(client));
        }
    },
    HC5 {
        @Override
        Running start() {
            CloseableHttpClient client =
                    HttpClientBuilder.create().disableAutomaticRetries().build();
            return new Running(Feign.builder().client(new ApacheHttp5Client(client)), client::close);
        }
    },
    JAVA11 {
        @Override
        Running start() {
            return new Running(Feign.builder().client(new Http2Client()), () -> {});
        }
    },
    ASYNC_DEFAULT {
        @Override
        Running start() {
            ExecutorService threads = Executors.newCachedThreadPool();
            return new Running(
                    AsyncFeign.builder().client(new AsyncClient.Default<>(new Client.Default(null, null), threads)),
                    threads::shutdownNow);
        }
    },
    ASYNC_OKHTTP {
        @Override
        Running start() {
            okhttp3.OkHttpClient client = new okhttp3.OkHttpClient();
            return new Running(AsyncFeign.builder().client(new OkHttpClient(client)), () -> stop(client));
        }
    },
    ASYNC_HC5 {
        @Override
        Running start() {
            CloseableHttpAsyncClient client =
                    HttpAsyncClients.custom().disableAutomaticRetries().build();
            client.start();
            return new Running(
                    AsyncFeign.<HttpClientContext>builder().client(new AsyncApacheHttp5Client(client)), client::close);
        }
    },
    ASYNC_JAVA11 {
        @Override
        Running start() {
            return new Running(AsyncFeign.builder().client(new Http2Client()), () -> {});
        }
    };

    abstract Running start();

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
