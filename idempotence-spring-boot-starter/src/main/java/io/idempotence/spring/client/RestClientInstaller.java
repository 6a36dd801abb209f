package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfig;
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
    private final boolean all;

    /** The calls that carry an ID, of those that no declared interface makes. They may go to third parties. */
    private enum Calls {
        NAMED,
        ALL
    }

    RestClientInstaller(IdempotenceClientConfig config, Environment environment) {
        this.config = config;
        this.all = Binder.get(environment)
                        .bind(EnvironmentSettings.REST_CLIENTS, Calls.class)
                        .orElse(Calls.NAMED)
                == Calls.ALL;
        if (!all) {
            LOG.info(
                    "Plain RestClients and RestTemplates carry no idempotence ID, except to hosts that have settings of their own"
                            + " (idempotence.client.clients.<host>.enabled=true). {}=all changes this",
                    EnvironmentSettings.REST_CLIENTS);
        }
    }

    void install(RestClient.Builder builder) {
        builder.requestInterceptors(interceptors -> interceptor().addTo(interceptors));
    }

    void install(RestTemplate template) {
        interceptor().addTo(template.getInterceptors());
    }

    private RestInterceptor interceptor() {
        return new RestInterceptor(config, all);
    }
}
