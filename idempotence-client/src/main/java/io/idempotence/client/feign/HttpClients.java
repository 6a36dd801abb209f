package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Request;
import feign.Request.HttpMethod;
import java.util.Set;

/** What is known of Feign's HTTP clients. */
final class HttpClients {
    static final String OKHTTP = "feign.okhttp.OkHttpClient";
    static final String HC5 = "feign.hc5.ApacheHttp5Client";
    private static final String JAVA11 = "feign.http2client.Http2Client";
    private static final Set<String> WITH_READS_THAT_END = Set.of(OKHTTP, HC5);
    private static final Set<String> DEFAULT = Set.of("feign.Client$Default", "feign.DefaultClient");

    /** What an HTTP client makes of a redirect. */
    enum Follows {
        /** With the same method and body. */
        SAME_REQUEST,
        WITH_GET,
        /** It reports an error. */
        NOT
    }

    private HttpClients() {}

    /** HttpURLConnection under Feign's own client, and nothing around it. */
    static boolean isDefault(Object client) {
        return DEFAULT.contains(client.getClass().getName());
    }

    /** java.net.http has a client, and its connections, for each connect timeout; so that of a request must not be cut. */
    static boolean isJava11(Object client) {
        return client.getClass().getName().equals(JAVA11);
    }

    /** True if a read that waits ends when the exchange is ended from another thread. That of java.net.http swallows interrupts. */
    static boolean endsReads(Object client) {
        return WITH_READS_THAT_END.contains(client.getClass().getName());
    }

    /** True if a body leaves while it is written, and HttpURLConnection has none to send again. */
    static boolean streams(Object client) {
        return isDefault(client) && !buffers(client);
    }

    /**
     * What the client would do by itself with a response of 301, 302 or 303 to a request that is not safe.
     *
     * @param client Feign's, or an asynchronous one around it
     */
    static Follows follows(Object client, Request request, int status) {
        Object sending = sending(client);
        HttpMethod method = request.httpMethod();
        byte[] body = request.body();
        if (isDefault(sending)) {
            if (body != null && body.length > 0 && streams(sending)) {
                return Follows.NOT;
            }
            return method == HttpMethod.POST ? Follows.WITH_GET : Follows.SAME_REQUEST;
        }
        boolean withGet = status == 303 || method == HttpMethod.POST || isOkHttp(sending);
        return withGet ? Follows.WITH_GET : Follows.SAME_REQUEST;
    }

    /**
     * HttpURLConnection, under Feign's default client, sends a request a second time when a kept connection breaks, and tells of
     * the second failure only: always if it has no body, and also with one if it was told to hold that back. A client that is not
     * known may be one around it.
     *
     * @param client Feign's, or an asynchronous one around it
     */
    static boolean mayResendSilently(Object client, boolean hasBody) {
        Object sending = sending(client);
        return hasBody ? buffers(sending) : !isOkHttp(sending);
    }

    private static boolean isOkHttp(Object client) {
        return client.getClass().getName().equals(OKHTTP);
    }

    private static Object sending(Object client) {
        try {
            Object under = client instanceof AsyncClient ? FeignField.of(client, client.getClass(), "client") : null;
            return under == null ? client : under;
        } catch (ReflectiveOperationException e) {
            return client;
        }
    }

    private static boolean buffers(Object client) {
        for (Class<?> type = client.getClass(); type != null; type = type.getSuperclass()) {
            if (DEFAULT.contains(type.getName())) {
                try {
                    return !Boolean.TRUE.equals(FeignField.of(client, type, "disableRequestBuffering"));
                } catch (ReflectiveOperationException e) {
                    return true;
                }
            }
        }
        return false;
    }
}
