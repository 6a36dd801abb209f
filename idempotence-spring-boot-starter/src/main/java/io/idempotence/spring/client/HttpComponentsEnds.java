package io.idempotence.spring.client;

import io.idempotence.client.internal.http.Watchdog.Watch;
import org.apache.hc.client5.http.classic.methods.HttpUriRequestBase;
import org.apache.hc.client5.http.config.Configurable;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.jspecify.annotations.Nullable;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;

/** Apache HttpClient. Its requests can be cancelled. It accepts the headers of a response that was cut. */
final class HttpComponentsEnds extends RequestEnds {
    private final boolean redirects;

    HttpComponentsEnds(ClientHttpRequestFactory factory) {
        this(factory, config(factory));
    }

    private HttpComponentsEnds(ClientHttpRequestFactory factory, @Nullable RequestConfig config) {
        super(factory, readTimeoutMillis(timeout(factory), config));
        this.redirects = config == null || config.isRedirectsEnabled();
    }

    private static @Nullable RequestConfig config(ClientHttpRequestFactory factory) {
        return SpringInternals.field(factory, "httpClient") instanceof Configurable client ? client.getConfig() : null;
    }

    private static long readTimeoutMillis(long ofFactory, @Nullable RequestConfig config) {
        return ofFactory > 0 || config == null || config.getResponseTimeout() == null
                ? ofFactory
                : config.getResponseTimeout().toMilliseconds();
    }

    @Override
    boolean provesHeaders() {
        return false;
    }

    @Override
    boolean followsRedirects() {
        return redirects;
    }

    @Override
    void bound(ClientHttpRequest request, Watch watch, long millisLeft) {
        if (SpringInternals.field(request, "httpRequest") instanceof HttpUriRequestBase base) {
            watch.exit(base::cancel);
        }
        if (SpringInternals.field(request, "httpContext") instanceof HttpClientContext context) {
            RequestConfig config = context.getRequestConfig();
            context.setRequestConfig((config == null ? RequestConfig.custom() : RequestConfig.copy(config))
                    .setRedirectsEnabled(false)
                    .build());
        }
    }
}
