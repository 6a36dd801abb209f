package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.ClientOperations;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/** The installation in clients for which the application did not call {@link IdempotentRestClient} itself. */
final class RestClientInstaller {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceClientAutoConfiguration.class);

    private final IdempotenceClientConfig config;
    private final ClientOperations operations;
    private final Calls calls;

    /** The calls that carry an ID, of those that no declared interface makes. They may go to third parties. */
    private enum Calls {
        /** Those of clients in which the application installs the client half. The others keep streaming their bodies. */
        NONE,
        NAMED,
        ALL
    }

    RestClientInstaller(IdempotenceClientConfig config, Environment environment) {
        this.config = config;
        this.operations = new ClientOperations(config, LOG);
        this.calls = Binder.get(environment)
                .bind(EnvironmentSettings.REST_CLIENTS, Calls.class)
                .orElse(Calls.NAMED);
        if (calls == Calls.NAMED) {
            LOG.info(
                    "Plain RestClients and RestTemplates carry no idempotence ID, except to hosts that have settings of their own"
                            + " (idempotence.client.clients.<host>.enabled=true). {}=all changes this",
                    EnvironmentSettings.REST_CLIENTS);
        }
    }

    void install(RestClient.Builder builder) {
        if (calls != Calls.NONE) {
            builder.requestInterceptors(interceptors -> interceptor().addTo(interceptors));
        }
    }

    void install(RestTemplate template) {
        if (calls != Calls.NONE) {
            interceptor().addTo(template.getInterceptors());
        }
    }

    /**
     * Whether a request of an HTTP service client should have carried an ID.
     *
     * @param client the client's name in settings; empty if it is unknown
     * @param annotated the value of {@code @Idempotent}, or null if there is none
     */
    boolean expectsId(String client, String method, @Nullable Boolean annotated, String httpMethod) {
        return calls != Calls.NONE
                && CallIdentity.carriesId(operations.of(client, method, annotated), httpMethod, false);
    }

    private RestInterceptor interceptor() {
        return new RestInterceptor(config, calls == Calls.ALL);
    }
}
