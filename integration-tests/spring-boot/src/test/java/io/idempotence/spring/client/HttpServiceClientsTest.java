package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.IdempotenceId;
import io.idempotence.Idempotent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.internal.Causes;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.SpringVersion;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestPart;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.service.annotation.DeleteExchange;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.invoker.HttpExchangeAdapter;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;

/** HTTP service clients, and the layers inside of their proxies. */
class HttpServiceClientsTest extends OrdersConsumer {
    interface OrdersExchange {
        @PostExchange("/orders")
        String create(@RequestBody String order);

        @DeleteExchange("/orders/7")
        @Idempotent
        void cancel();

        @PostExchange("/orders")
        String createOnce(@RequestBody String order);

        @PostExchange(url = "/documents", contentType = "multipart/form-data")
        String keep(@RequestPart("document") String document);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(OrdersConsumer.Events.class)
    static class Application {
        @Bean
        OrdersExchange orders(RestClient.Builder builder, @Value("${proxy}") String proxy) {
            return HttpServiceProxyFactory.builderFor(
                            RestClientAdapter.create(builder.baseUrl(proxy).build()))
                    .build()
                    .createClient(OrdersExchange.class);
        }
    }

    @BeforeAll
    static void start() {
        application = run(
                Application.class,
                "idempotence.client.rest-clients=all",
                "idempotence.client.clients.[127.0.0.1:" + proxy.port() + "#createOnce].retry.max-attempts=1");
    }

    /** A client of Boot's builder. */
    private static RestClient client() {
        return application
                .getBean(RestClient.Builder.class)
                .baseUrl(proxy.url())
                .build();
    }

    private static void assertOneId(int requests) {
        List<String> ids = proxy.headers("Idempotency-Key");
        assertThat(ids).hasSize(requests).doesNotContain("-");
        assertThat(ids.stream().distinct()).hasSize(1);
    }

    @Test
    void httpServiceClientsHaveTheSame() {
        proxy.loseResponses(1);
        assertThat(application.getBean(OrdersExchange.class).create("tea")).isEqualTo("order 1: tea");
        assertOneId(2);
        assertThat(provider.executions()).hasValue(1);
        assertThat(events())
                .singleElement()
                .satisfies(event -> assertThat(event.method()).isEqualTo("create"));
    }

    /** A client whose adapter does something else once its call has failed, as a layer inside of its proxy may. */
    private static OrdersExchange orAfterAFailure(UnaryOperator<Callable<Object>> other) {
        return bean(OrdersExchange.class, orAfterAFailure(RestClientAdapter.create(client()), other));
    }

    private static HttpExchangeAdapter orAfterAFailure(
            HttpExchangeAdapter adapter, UnaryOperator<Callable<Object>> other) {
        Object layer = Proxy.newProxyInstance(
                adapter.getClass().getClassLoader(),
                new Class<?>[] {HttpExchangeAdapter.class},
                (proxy, method, args) -> {
                    try {
                        return method.invoke(adapter, args);
                    } catch (InvocationTargetException e) {
                        return other.apply(() -> method.invoke(adapter, args)).call();
                    }
                });
        return (HttpExchangeAdapter) layer;
    }

    private static <T> T bean(Class<T> type, HttpExchangeAdapter adapter) {
        return bean(type, HttpServiceProxyFactory.builderFor(adapter));
    }

    @Test
    void callThatALayerInsideOfItsProxyRepeatsKeepsItsId() {
        proxy.loseResponses(3);
        assertThat(orAfterAFailure(repetition -> repetition).create("tea")).isEqualTo("order 1: tea");
        assertOneId(4);
        assertThat(provider.executions()).hasValue(1);
    }

    /** The interceptor in front is told the ID on Spring 6, and the repetition begins without one. */
    @Test
    void callBehindAnInterceptorThatALayerInsideOfItsProxyRepeatsKeepsItsId() {
        proxy.loseResponses(3);
        RestClient measured = client().mutate()
                .requestInterceptors(all -> all.add(0, (request, body, execution) -> execution.execute(request, body)))
                .build();
        HttpExchangeAdapter adapter = orAfterAFailure(RestClientAdapter.create(measured), repetition -> repetition);
        assertThat(bean(OrdersExchange.class, adapter).create("tea")).isEqualTo("order 1: tea");
        assertOneId(4);
        assertThat(provider.executions()).hasValue(1);
    }

    /** A client with an interceptor in front of the client half, which sends each request first to {@code address}. */
    private static OrdersExchange sendingFirstTo(String address, boolean marked) {
        return bean(OrdersExchange.class, factory(sendingFirstTo(address, () -> {}), marked));
    }

    private static HttpExchangeAdapter sendingFirstTo(String address, Runnable then) {
        RestClient client = client().mutate()
                .requestInterceptors(all -> all.add(0, (request, body, execution) -> {
                    try {
                        execution.execute(at(address, request), body).close();
                    } catch (RestOutcomeUnknownException e) {
                        assertThat(e.attempts()).isEqualTo(3);
                    }
                    then.run();
                    return execution.execute(request, body);
                }))
                .build();
        return RestClientAdapter.create(client);
    }

    /** @param marked whether it marks its requests, as those of the clients of groups do */
    static HttpServiceProxyFactory.Builder factory(HttpExchangeAdapter adapter, boolean marked) {
        HttpServiceProxyFactory.Builder factory = HttpServiceProxyFactory.builderFor(adapter);
        return marked
                ? factory.customArgumentResolver((argument, parameter, request) -> {
                    HttpServiceCall.mark(request);
                    return false;
                })
                : factory;
    }

    private static HttpRequest at(String address, HttpRequest request) {
        return new HttpRequestWrapper(request) {
            @Override
            public URI getURI() {
                return URI.create(address);
            }
        };
    }

    /** As one that fails over does. On Spring 7 the order was executed twice. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callThatAnInterceptorInFrontSendsToAnotherHostKeepsItsId(boolean marked) {
        proxy.loseResponses(3);
        OrdersExchange orders = sendingFirstTo("http://localhost:" + proxy.port() + "/orders", marked);
        assertThat(orders.create("tea")).isEqualTo("order 1: tea");
        assertOneId(4);
        assertThat(provider.executions()).hasValue(1);
    }

    /** The order of a client in a group had the ID of the token. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void tokenThatAnInterceptorInFrontFetchesThroughTheChainIsACallOfItsOwn(boolean marked) {
        assertThat(sendingFirstTo(proxy.url() + "/plain", marked).create("tea")).isEqualTo("order 1: tea");
        List<String> ids = proxy.headers("Idempotency-Key");
        assertThat(ids).hasSize(2).doesNotHaveDuplicates();
        // On Spring 6 the second request passes the client half by.
        assertThat(ids.get(1).equals("-")).isEqualTo(SpringVersion.getVersion().startsWith("6."));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callAfterATokenThatALayerInsideOfItsProxyRepeatsKeepsItsId(boolean marked) {
        // On Spring 6 the second request of the interceptor passes the client half by.
        assumeThat(SpringVersion.getVersion()).startsWith("7");
        AtomicInteger losses = new AtomicInteger(3);
        HttpExchangeAdapter adapter =
                sendingFirstTo(proxy.url() + "/plain", () -> proxy.loseResponses(losses.getAndSet(0)));
        assertThat(bean(OrdersExchange.class, factory(orAfterAFailure(adapter, repetition -> repetition), marked))
                        .create("tea"))
                .isEqualTo("order 1: tea");
        assertThat(provider.executions()).hasValue(1);
    }

    /** Each time it is encoded, it has another boundary. */
    @Test
    void multipartCallThatALayerInsideOfItsProxyRepeatsKeepsItsId() {
        proxy.loseResponses(3);
        assertThat(orAfterAFailure(repetition -> repetition).keep("tea")).isEqualTo("document 1: tea");
        assertOneId(4);
        assertThat(provider.executions()).hasValue(1);
    }

    /** Its exception reads as "not executed". */
    @Test
    void callWhoseRepetitionALayerInsideOfItsProxyRefusesIsUnknown() {
        proxy.loseResponses(3);
        OrdersExchange orders = orAfterAFailure(repetition -> () -> {
            throw new RejectedExecutionException("open");
        });
        assertUnknown(() -> orders.create("tea"), RejectedExecutionException.class);
        assertThat(orders.create("tea")).isEqualTo("order 2: tea");
    }

    /** The handler may have taken effect before it failed. */
    @Test
    void failureOfTheHandlerThatALayerInsideOfTheProxyReplacesByARefusalIsUnknown() {
        OrdersExchange orders = orAfterAFailure(repetition -> () -> {
            throw new RejectedExecutionException("open");
        });
        assertUnknown(() -> orders.create("broken"), RejectedExecutionException.class);
    }

    @Test
    void unknownOutcomeThatALayerInsideOfTheProxyReplacesIsUnknown() {
        proxy.loseResponses(3);
        OrdersExchange orders = orAfterAFailure(repetition -> () -> {
            throw new IllegalStateException("sorry");
        });
        assertUnknown(() -> orders.create("tea"), IllegalStateException.class);
    }

    /** The caller would take its failure, that nothing was sent, for the end of his call. */
    @Test
    void failureOfAnotherCallInALayerInsideOfTheProxyHidesNoUnknownOutcome() throws IOException {
        RestClient nobody;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            nobody = client().mutate()
                    .baseUrl("http://127.0.0.1:" + free.getLocalPort())
                    .build();
        }
        proxy.loseResponses(3);
        OrdersExchange orders = orAfterAFailure(repetition ->
                () -> nobody.post().uri("/orders").body("coffee").retrieve().body(String.class));
        assertUnknown(() -> orders.create("tea"), ConnectException.class);
    }

    /** The caller would ask again under an ID that the provider has never seen. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void unknownOutcomeOfAnotherCallInALayerInsideOfTheProxyDoesNotHideThatOfTheCall(boolean throughAProxy) {
        proxy.loseResponses(6);
        OrdersExchange other = application.getBean(OrdersExchange.class);
        RestClient plain = client();
        OrdersExchange orders = orAfterAFailure(repetition -> () -> throughAProxy
                ? other.create("coffee")
                : plain.post().uri("/orders").body("coffee").retrieve().body(String.class));
        assertThatThrownBy(() -> orders.create("tea"))
                .isInstanceOfSatisfying(RestOutcomeUnknownException.class, unknown -> {
                    List<String> ids = proxy.headers("Idempotency-Key");
                    assertThat(ids).hasSize(6);
                    assertThat("\"" + unknown.id() + "\"").isEqualTo(ids.get(0)).isNotEqualTo(ids.get(3));
                });
    }

    @Test
    void unknownOutcomeOfAnotherCallInALayerInsideOfTheProxyIsTheEndOfACallThatIsKnown() {
        OrdersExchange other = application.getBean(OrdersExchange.class);
        OrdersExchange orders = orAfterAFailure(repetition -> () -> {
            proxy.loseResponses(3);
            return other.create("coffee");
        });
        assertThatThrownBy(() -> orders.create("broken"))
                .isInstanceOfSatisfying(RestOutcomeUnknownException.class, unknown -> {
                    List<String> ids = proxy.headers("Idempotency-Key");
                    assertThat("\"" + unknown.id() + "\"")
                            .isEqualTo(ids.get(ids.size() - 1))
                            .isNotEqualTo(ids.get(0));
                });
    }

    @Test
    void exceptionOfALayerInsideOfTheProxyAfterTheResponseIsItsOwnUnlessItIsARefusal() {
        proxy.loseResponses(3);
        assertThatThrownBy(() -> orAfterAFailure(repetition -> () -> {
                            repetition.call();
                            throw new IllegalStateException("too late");
                        })
                        .create("tea"))
                .isInstanceOf(IllegalStateException.class);
        assertOneId(4);
        proxy.forget();
        proxy.loseResponses(3);
        assertThatThrownBy(() -> orAfterAFailure(repetition -> () -> {
                            repetition.call();
                            throw new RejectedExecutionException("open");
                        })
                        .create("tea"))
                .isInstanceOf(RestOutcomeUnknownException.class);
        assertOneId(4);
    }

    private static void assertUnknown(ThrowingCallable call, Class<? extends Throwable> cause) {
        assertThatThrownBy(call).isInstanceOfSatisfying(RestOutcomeUnknownException.class, unknown -> {
            assertThat("\"" + unknown.id() + "\"")
                    .isEqualTo(proxy.headers("Idempotency-Key").get(0));
            assertThat(Causes.has(unknown, cause)).isTrue();
        });
        assertOneId(3);
    }

    @Test
    void refusalOfALayerInsideOfTheProxyBeforeAnyRequestIsItsOwnException() {
        HttpExchangeAdapter refusing = (HttpExchangeAdapter) Proxy.newProxyInstance(
                HttpExchangeAdapter.class.getClassLoader(),
                new Class<?>[] {HttpExchangeAdapter.class},
                (proxy, method, args) -> {
                    if (method.getName().equals("supportsRequestAttributes")) {
                        return true;
                    }
                    throw new RejectedExecutionException("open");
                });
        assertThatThrownBy(() -> bean(OrdersExchange.class, refusing).create("tea"))
                .isInstanceOf(RejectedExecutionException.class);
    }

    /** A layer that resumed a call made a new one. */
    @Test
    void scopeOfALayerInsideOfTheProxyIsTheInnermost() {
        HttpExchangeAdapter adapter = RestClientAdapter.create(client());
        HttpExchangeAdapter layer = (HttpExchangeAdapter) Proxy.newProxyInstance(
                adapter.getClass().getClassLoader(),
                new Class<?>[] {HttpExchangeAdapter.class},
                (proxy, method, args) ->
                        IdempotenceScope.with(new IdempotenceId("of-a-layer"), () -> method.invoke(adapter, args)));
        IdempotenceScope.with(
                new IdempotenceId("of-its-caller"),
                () -> bean(OrdersExchange.class, layer).create("tea"));
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("\"of-a-layer\"");
    }

    @Test
    void anotherCallInALayerInsideOfTheProxyHasItsOwnId() {
        proxy.loseResponses(3);
        RestClient client = client();
        assertThat(orAfterAFailure(repetition -> () -> client.post()
                                .uri("/orders")
                                .body("coffee")
                                .retrieve()
                                .body(String.class))
                        .create("tea"))
                .isEqualTo("order 2: coffee");
        assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(2);
    }

    @Test
    void methodsOfHttpServiceClientsHaveAnnotationsAndSettings() {
        application.getBean(OrdersExchange.class).cancel();
        assertOneId(1);
        proxy.forget();
        proxy.loseResponses(1);
        assertThatThrownBy(() -> application.getBean(OrdersExchange.class).createOnce("tea"))
                .isInstanceOf(RestOutcomeUnknownException.class);
        assertOneId(1);
    }

    /** Its outgoing calls would get the annotation and the name of the method that it serves. */
    @Test
    void proxyOfAControllerThatImplementsAnHttpServiceIsNoClient() {
        OrdersExchange controller = new OrdersExchange() {
            @Override
            public String create(String order) {
                return order;
            }

            @Override
            public void cancel() {}

            @Override
            public String createOnce(String order) {
                return order;
            }

            @Override
            public String keep(String document) {
                return document;
            }
        };
        Object proxy = new ProxyFactory(controller).getProxy();
        application.getBean(ClientBeans.class).postProcessAfterInitialization(proxy, "controller");
        assertThat(((Advised) proxy).getAdvisors()).isEmpty();
    }
}
