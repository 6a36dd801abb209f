package io.idempotence.it.client;

import java.net.http.HttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;

/** The request factories of Spring's {@code RestClient} that are supported. */
enum RestClientFactory {
    URL_CONNECTION {
        @Override
        ClientHttpRequestFactory create() {
            return new SimpleClientHttpRequestFactory();
        }
    },
    JDK {
        @Override
        ClientHttpRequestFactory create() {
            return new JdkClientHttpRequestFactory(HttpClient.newHttpClient());
        }
    },
    HTTP_COMPONENTS {
        @Override
        ClientHttpRequestFactory create() {
            return new HttpComponentsClientHttpRequestFactory(
                    HttpClients.custom().disableAutomaticRetries().build());
        }
    };

    abstract ClientHttpRequestFactory create();
}
