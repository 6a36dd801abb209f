package io.idempotence.client.feign;

import feign.AsyncClient;
import java.util.Set;

/** What is known of Feign's HTTP clients. */
final class HttpClients {
    private static final Set<String> DEFAULT = Set.of("feign.Client$Default", "feign.DefaultClient");

    private HttpClients() {}

    /**
     * HttpURLConnection, under Feign's default client, sends a request a second time when a kept connection breaks, and tells of
     * the second failure only: always if it has no body, and also with one if it was told to hold that back. A client that is not
     * known may be one around it.
     *
     * @param client Feign's, or an asynchronous one around it
     */
    static boolean mayResendSilently(Object client, boolean hasBody) {
        Object sending = sending(client);
        return hasBody ? buffers(sending) : !sending.getClass().getName().startsWith("feign.okhttp.");
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
