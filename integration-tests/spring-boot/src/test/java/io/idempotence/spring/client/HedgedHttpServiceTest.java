package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.spring.client.HttpServiceClientsTest.OrdersExchange;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpStatus;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.service.invoker.HttpExchangeAdapter;

/** A call of an HTTP service client whose layer has two requests in flight at once. */
class HedgedHttpServiceTest extends OrdersConsumer {
    private final CountDownLatch inFlight = new CountDownLatch(1);
    private final CountDownLatch over = new CountDownLatch(1);
    private final AtomicReference<Future<?>> first = new AtomicReference<>();

    @BeforeAll
    static void start() {
        application = run(HttpServiceClientsTest.Application.class, "idempotence.client.rest-clients=all");
    }

    /** Holds the first request, and responds to the second one. */
    private ClientHttpRequestInterceptor gate() {
        return (request, body, execution) -> {
            if (inFlight.getCount() == 0) {
                return new MockClientHttpResponse(new byte[0], HttpStatus.UNAUTHORIZED);
            }
            inFlight.countDown();
            try {
                over.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            return execution.execute(request, body);
        };
    }

    private HttpExchangeAdapter hedging(HttpExchangeAdapter adapter, ExecutorService executor) {
        return (HttpExchangeAdapter) Proxy.newProxyInstance(
                adapter.getClass().getClassLoader(),
                new Class<?>[] {HttpExchangeAdapter.class},
                (proxy, method, args) -> {
                    try {
                        if (method.getName().equals("exchangeForBody")) {
                            first.set(executor.submit(() -> method.invoke(adapter, args)));
                            inFlight.await();
                        }
                        return method.invoke(adapter, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    /** The 401 was the end of the call, although the other request was executed. */
    @Test
    void refusalOfOneRequestDoesNotHideTheOtherOne() throws Exception {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        try {
            RestClient client = application
                    .getBean(RestClient.Builder.class)
                    .baseUrl(proxy.url())
                    .requestInterceptor(gate())
                    .build();
            HttpExchangeAdapter adapter = hedging(RestClientAdapter.create(client), executor);
            OrdersExchange orders = bean(OrdersExchange.class, HttpServiceClientsTest.factory(adapter, true));
            assertThatThrownBy(() -> orders.create("tea")).isInstanceOf(RestOutcomeUnknownException.class);
            over.countDown();
            first.get().get();
        } finally {
            over.countDown();
            executor.shutdown();
        }
    }
}
