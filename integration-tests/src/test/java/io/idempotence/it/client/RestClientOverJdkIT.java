package io.idempotence.it.client;

import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.time.Duration;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;

/** {@code RestClient} over the JDK's client, which is Spring Boot's choice if there is no other. */
class RestClientOverJdkIT extends RestClientContract {
    @Override
    ClientHttpRequestFactory factory(Duration connect, Duration read) {
        JdkClientHttpRequestFactory factory = new JdkClientHttpRequestFactory(HttpClient.newBuilder()
                .connectTimeout(connect)
                .followRedirects(HttpClient.Redirect.NORMAL)
                .build());
        if (!read.isZero()) {
            factory.setReadTimeout(read);
        }
        return factory;
    }

    @Override
    Class<? extends Throwable> connectTimeout() {
        return HttpConnectTimeoutException.class;
    }
}
