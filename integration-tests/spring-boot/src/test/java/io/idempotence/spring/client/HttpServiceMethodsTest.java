package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.Idempotent;
import io.idempotence.spring.client.HttpServiceClientsTest.OrdersExchange;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpStatus;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.service.annotation.DeleteExchange;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.invoker.HttpExchangeAdapter;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;

/** Tests of what the interfaces of HTTP service clients declare, and of calls that take more than one thread. */
class HttpServiceMethodsTest extends OrdersConsumer {
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableAsync
    static class Application {}

    @BeforeAll
    static void start() {
        application = run(Application.class);
    }

    private static <T> T client(Class<T> type) {
        return bean(type, HttpServiceProxyFactory.builderFor(adapter()));
    }

    private static HttpExchangeAdapter adapter() {
        return RestClientAdapter.create(application
                .getBean(RestClient.Builder.class)
                .baseUrl(proxy.url())
                .build());
    }

    interface Base {
        @PostExchange("/plain")
        String post(@RequestBody String order);

        @DeleteExchange("/orders/7")
        void delete();

        @PostExchange("/plain")
        @Idempotent(false)
        String never(@RequestBody String order);

        @DeleteExchange("/orders/7")
        @Idempotent
        void always();
    }

    interface Plain extends Base {}

    @Idempotent
    interface Protected extends Base {}

    interface Extending extends Protected {}

    @Idempotent(false)
    interface Unprotected extends Base {}

    interface OfThirdParty extends Unprotected {}

    @Idempotent
    interface Again extends OfThirdParty {}

    @Idempotent(false)
    interface Redeclaring extends Base {
        @Override
        @DeleteExchange("/orders/7")
        void always();

        @Override
        @PostExchange("/plain")
        @Idempotent
        String never(@RequestBody String order);
    }

    @Idempotent
    interface Declaring extends Base {
        @Override
        @DeleteExchange("/orders/7")
        void delete();
    }

    @Idempotent(false)
    interface UnlessDeclared extends Declaring {}

    private static <T extends Base> List<Boolean> carried(Class<T> type) {
        proxy.forget();
        T client = client(type);
        client.post("x");
        client.delete();
        client.never("x");
        client.always();
        return proxy.headers("Idempotency-Key").stream()
                .map(id -> !id.equals("-"))
                .toList();
    }

    /** The rule is that of Feign clients. */
    @Test
    void annotationsOfMethodsAndInterfacesDecideAlsoWhenInherited() {
        //                                                       post   delete never  always
        assertThat(carried(Base.class)).containsExactly(true, false, false, true);
        assertThat(carried(Plain.class)).containsExactly(true, false, false, true);
        assertThat(carried(Protected.class)).containsExactly(true, true, false, true);
        assertThat(carried(Extending.class)).containsExactly(true, true, false, true);
        assertThat(carried(Unprotected.class)).containsExactly(false, false, false, true);
        assertThat(carried(OfThirdParty.class)).containsExactly(false, false, false, true);
        assertThat(carried(Again.class)).containsExactly(true, true, false, true);
        assertThat(carried(UnlessDeclared.class)).containsExactly(false, true, false, true);
        assertThat(carried(Redeclaring.class)).containsExactly(false, false, true, true);
    }

    interface InAnotherThread {
        @Async
        @PostExchange("/orders")
        void create(@RequestBody String order);
    }

    /** It had no ID: the proxy had returned before the other thread made the request. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void asynchronousMethodCarriesAnId(boolean marked) {
        proxy.loseResponses(1);
        InAnotherThread orders = bean(InAnotherThread.class, HttpServiceClientsTest.factory(adapter(), marked));
        orders.create("tea");
        await().untilAsserted(() ->
                assertThat(proxy.headers("Idempotency-Key")).hasSize(2).doesNotContain("-"));
        assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(1);
        assertThat(provider.executions()).hasValue(1);
    }

    /** Of the hedged call: its first request is in flight, and it may end. */
    private final CountDownLatch inFlight = new CountDownLatch(1);

    private final CountDownLatch over = new CountDownLatch(1);
    private final AtomicReference<Future<?>> first = new AtomicReference<>();

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
