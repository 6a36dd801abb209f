package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;

/** Calls that no declared interface makes: they may go to third parties, which would execute a retried request twice. */
class UndeclaredRestClientsTest {
    private static final IdempotenceClientConfig PATIENT =
            IdempotenceClientConfig.builder().deadline(Duration.ofMinutes(2)).build();

    private static LossyProxy proxy;

    interface OrdersExchange {
        @PostExchange("/orders")
        String create(@RequestBody String order);
    }

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(IdempotenceClientAutoConfiguration.class))
            .withPropertyValues("idempotence.client.retry.wait=1ms", "idempotence.client.deadline=2m")
            .withBean(RestClient.Builder.class, RestClient::builder)
            .withBean(RestTemplate.class, () -> new RestTemplate())
            .withUserConfiguration(Exchange.class);

    @Configuration(proxyBeanMethods = false)
    static class Exchange {
        @Bean
        OrdersExchange orders(RestClient.Builder builder) {
            return HttpServiceProxyFactory.builderFor(RestClientAdapter.create(
                            builder.clone().baseUrl(proxy.url()).build()))
                    .build()
                    .createClient(OrdersExchange.class);
        }
    }

    @BeforeAll
    static void start() {
        proxy = LossyProxy.before(OrdersProvider.shared().port());
    }

    @AfterAll
    static void stop() throws Exception {
        proxy.close();
    }

    @BeforeEach
    void loseTheFirstResponse() {
        proxy.forget();
        OrdersProvider.shared().executions().set(0);
        proxy.loseResponses(1);
    }

    /** {@code withPropertyValues} takes the colon of a port for the end of a key. */
    private ApplicationContextRunner with(String property) {
        String[] parts = property.replace("HOST", "127.0.0.1:" + proxy.port()).split("=", 2);
        return runner.withInitializer(
                context -> context.getEnvironment().getPropertySources().addFirst(source(parts[0], parts[1])));
    }

    private static PropertySource<?> source(String key, String value) {
        return key.startsWith("IDEMPOTENCE_")
                ? new SystemEnvironmentPropertySource("systemEnvironment", Map.of(key, value))
                : new MapPropertySource("the test's", Map.of(key, value));
    }

    private static RestClient.RequestBodySpec order(RestClient.Builder builder) {
        return builder.build().post().uri(proxy.url() + "/orders");
    }

    private static String send(RestClient.RequestBodySpec order) {
        return order.body("tea").retrieve().body(String.class);
    }

    private static void assertRetriedUnderOneId(String result) {
        assertThat(result).isEqualTo("order 1: tea");
        assertThat(proxy.headers("Idempotency-Key")).hasSize(2).doesNotContain("-");
        assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(1);
        assertThat(OrdersProvider.shared().executions()).hasValue(1);
    }

    private static void assertSentOnceWithoutId() {
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("-");
    }

    @Test
    void areLeftAloneOnRequest() {
        with("idempotence.client.rest-clients=none").run(context -> {
            context.getBean(RestClient.Builder.class)
                    .requestInterceptors(
                            interceptors -> assertThat(interceptors).isEmpty());
            assertThat(context.getBean(RestTemplate.class).getInterceptors()).isEmpty();
            RestClient.Builder own =
                    IdempotentRestClient.install(RestClient.builder(), context.getBean(IdempotenceClientConfig.class));
            assertRetriedUnderOneId(send(order(own)));
        });
    }

    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void carryNoIdAndAreNotRetriedUnlessTheApplicationAsks(CapturedOutput output) {
        runner.run(context -> {
            assertThat(output.toString().lines().filter(line -> line.contains("rest-clients")))
                    .singleElement()
                    .asString()
                    .contains("INFO", "idempotence.client.clients.<host>");
            assertThatThrownBy(() -> send(order(context.getBean(RestClient.Builder.class))))
                    .isInstanceOf(ResourceAccessException.class)
                    .isNotInstanceOf(OutcomeUnknown.class);
            assertSentOnceWithoutId();
            assertThat(proxy.headers("Prefer")).containsExactly("-");

            loseTheFirstResponse();
            assertThatThrownBy(() -> context.getBean(RestTemplate.class)
                            .postForObject(proxy.url() + "/orders", "tea", String.class))
                    .isInstanceOf(ResourceAccessException.class)
                    .isNotInstanceOf(OutcomeUnknown.class);
            assertSentOnceWithoutId();
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "idempotence.client.rest-clients=all",
                "idempotence.client.restClients=ALL",
                "IDEMPOTENCE_CLIENT_RESTCLIENTS=all",
                "IDEMPOTENCE_CLIENT_REST_CLIENTS=all",
                "idempotence.client.clients.[HOST].enabled=true",
                "idempotence.client.clients.[HOST].deadline=3m",
                "idempotence.client.clients.[HOST#POST].retry.max-attempts=2"
            })
    void carryAnIdIfASettingRequiresIt(String property) {
        with(property).run(context -> {
            assertRetriedUnderOneId(send(order(context.getBean(RestClient.Builder.class))));
            loseTheFirstResponse();
            assertRetriedUnderOneId(
                    context.getBean(RestTemplate.class).postForObject(proxy.url() + "/orders", "tea", String.class));
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "idempotence.client.rest-clients=named",
                "idempotence.client.clients.[HOST].enabled=false",
                "idempotence.client.clients.[HOST#PATCH].retry.max-attempts=2",
                "idempotence.client.clients.other.deadline=9s"
            })
    void carryNoneIfASettingIsNoOrAnother(String property) {
        with(property).run(context -> {
            assertThatThrownBy(() -> send(order(context.getBean(RestClient.Builder.class))))
                    .isNotInstanceOf(OutcomeUnknown.class);
            assertSentOnceWithoutId();
        });
    }

    static Stream<Named<Function<RestClient.Builder, String>>> askingCalls() {
        return Stream.of(
                Named.of("header", client -> send(order(client).header("Idempotency-Key", "\"plain-header\""))),
                Named.of(
                        "scope",
                        client -> IdempotenceScope.with(new IdempotenceId("plain-scope"), () -> send(order(client)))),
                Named.of("attribute", client -> send(order(client).attribute(IdempotentRestClient.IDEMPOTENT, true))),
                Named.of(
                        "installed by the application",
                        client -> send(order(IdempotentRestClient.install(client, PATIENT)))));
    }

    @ParameterizedTest
    @MethodSource("askingCalls")
    void carryAnIdIfTheCallRequiresIt(Function<RestClient.Builder, String> call) {
        runner.run(context -> assertRetriedUnderOneId(call.apply(context.getBean(RestClient.Builder.class))));
    }

    @Test
    void methodsOfHttpServiceClientsCarryOne() {
        runner.run(context ->
                assertRetriedUnderOneId(context.getBean(OrdersExchange.class).create("tea")));
    }

    /**
     * An HTTP service client over {@code WebClient}, which the client half does not support, with a filter that calls a {@code RestClient},
     * for example for a token.
     */
    @Configuration(proxyBeanMethods = false)
    static class OverWebClient {
        interface ReactiveExchange {
            @PostExchange("/orders")
            String create(@RequestBody String order);
        }

        @Bean
        ReactiveExchange reactive(RestClient.Builder builder) {
            return HttpServiceProxyFactory.builderFor(new ReactiveAdapter(() -> send(order(builder))))
                    .build()
                    .createClient(ReactiveExchange.class);
        }
    }

    @Test
    void callInAFilterOfAWebClientIsAPlainCall() {
        runner.withUserConfiguration(OverWebClient.class).run(context -> {
            assertThatThrownBy(() -> context.getBean(OverWebClient.ReactiveExchange.class)
                            .create("tea"))
                    .isInstanceOf(ResourceAccessException.class)
                    .isNotInstanceOf(OutcomeUnknown.class);
            assertSentOnceWithoutId();
        });
    }

    /** A proxy around the client bean, like the one that Spring makes for an aspect, such as that of an annotation of Resilience4j. */
    private record Aspect(MethodInterceptor advice) implements BeanPostProcessor, Ordered {
        @Override
        public int getOrder() {
            return LOWEST_PRECEDENCE;
        }

        @Override
        public Object postProcessAfterInitialization(Object bean, String name) {
            if (!(bean instanceof OrdersExchange)) {
                return bean;
            }
            ProxyFactory proxy = new ProxyFactory(bean);
            proxy.addAdvice(advice);
            return proxy.getProxy();
        }
    }

    @Test
    void methodsOfHttpServiceClientsInAnAspectCarryOne() {
        runner.withBean(Aspect.class, () -> new Aspect(MethodInvocation::proceed))
                .run(context -> assertRetriedUnderOneId(
                        context.getBean(OrdersExchange.class).create("tea")));
    }

    @Test
    void fallbackOfAnAspectIsAPlainCall() {
        proxy.loseResponses(99);
        AtomicReference<RestClient.Builder> plain = new AtomicReference<>();
        MethodInterceptor fallback = invocation -> {
            try {
                return invocation.proceed();
            } catch (ResourceAccessException e) {
                return send(order(plain.get()));
            }
        };
        runner.withBean(Aspect.class, () -> new Aspect(fallback)).run(context -> {
            plain.set(context.getBean(RestClient.Builder.class));
            assertThatThrownBy(() -> context.getBean(OrdersExchange.class).create("tea"))
                    .isInstanceOf(ResourceAccessException.class)
                    .isNotInstanceOf(OutcomeUnknown.class);
            assertThat(proxy.headers("Idempotency-Key").subList(0, 3)).doesNotContain("-");
            assertThat(proxy.headers("Idempotency-Key").subList(3, 4)).containsExactly("-");
            assertThat(proxy.requests()).hasSize(4);
        });
    }

    @Test
    void unknownValueFailsTheStart() {
        runner.withPropertyValues("idempotence.client.rest-clients=some")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("RestClientInstaller.Calls.some"));
    }
}
