package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Client;
import feign.FeignException;
import feign.hc5.ApacheHttp5Client;
import io.idempotence.Idempotent;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Consumer;
import org.apache.hc.client5.http.classic.methods.HttpPost;
import org.apache.hc.client5.http.impl.DefaultHttpRequestRetryStrategy;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.core5.http.io.entity.StringEntity;
import org.apache.hc.core5.util.TimeValue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignAutoConfiguration;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.cloud.openfeign.clientconfig.HttpClient5FeignConfiguration.HttpClientBuilderCustomizer;
import org.springframework.cloud.openfeign.loadbalancer.FeignBlockingLoadBalancerClient;
import org.springframework.cloud.openfeign.loadbalancer.RetryableFeignBlockingLoadBalancerClient;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;

/** Feign clients over Apache HttpClient behind a load balancer. HttpClient sends a request again after a 503, also a POST. */
class ApacheHttpClientRetriesTest extends OrdersConsumer {
    private static LossyProxy leaving;

    private final ApplicationContextRunner contexts = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(FeignAutoConfiguration.class, IdempotenceClientAutoConfiguration.class))
            .withPropertyValues("spring.cloud.openfeign.httpclient.hc5.enabled=true");

    @FeignClient(name = "orders")
    interface Orders {
        @PostMapping("/orders")
        String create(@RequestBody String order);

        @DeleteMapping("/orders/{id}")
        @Idempotent
        String cancel(@PathVariable("id") String id);

        @GetMapping("/orders")
        String list();
    }

    @FeignClient(name = "leaving")
    interface Leaving {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    @FeignClient(name = "switched-off")
    interface SwitchedOff {
        @PostMapping("/plain")
        String create(@RequestHeader("Idempotency-Key") String own, @RequestBody String order);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableFeignClients(clients = {Orders.class, Leaving.class, SwitchedOff.class})
    static class Application {}

    @BeforeAll
    static void start() {
        leaving = LossyProxy.before(provider.port());
        application = run(
                Application.class,
                "spring.cloud.openfeign.httpclient.hc5.enabled=true",
                "spring.cloud.discovery.client.simple.instances.orders[0].uri=" + proxy.url(),
                "spring.cloud.discovery.client.simple.instances.leaving[0].uri=" + leaving.url(),
                "spring.cloud.discovery.client.simple.instances.switched-off[0].uri=" + proxy.url(),
                "idempotence.client.retry.max-attempts=3",
                "idempotence.client.clients.switched-off.enabled=false");
    }

    @AfterAll
    static void closeProxy() throws IOException {
        leaving.close();
    }

    @Test
    void httpClientIsInsideOfTheLoadBalancersClient() {
        Client client = application.getBean(Client.class);
        assertThat(
                        client instanceof RetryableFeignBlockingLoadBalancerClient retrying
                                ? retrying.getDelegate()
                                : ((FeignBlockingLoadBalancerClient) client).getDelegate())
                .isInstanceOf(ApacheHttp5Client.class);
    }

    @Test
    void eachAttemptIsOneRequest() {
        proxy.replaceResponses(2);
        assertThat(application.getBean(Orders.class).create("tea")).isEqualTo("order 1: tea");
        assertThat(proxy.headers("Idempotency-Attempt")).containsExactly("1", "2", "3");
        assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(1);
    }

    /** HttpClient sends a DELETE again also after a reset. */
    @Test
    void eachAttemptIsOneRequestAfterAReset() {
        proxy.loseResponses(1);
        assertThat(application.getBean(Orders.class).cancel("7")).isEqualTo("cancelled 7");
        assertThat(proxy.headers("Idempotency-Attempt")).containsExactly("1", "2");
    }

    /** HttpClient's own second request hid the 503, after which the operation may have taken effect, and the call ended as not sent. */
    @Test
    void executedCallIsNotReportedAsNotSentIfNobodyListensAfterwards() {
        leaving.replaceResponses(1);
        leaving.leaveBeforeTheNextResponse();
        assertThatThrownBy(() -> application.getBean(Leaving.class).create("tea"))
                .isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(provider.executions()).hasValue(1);
        assertThat(leaving.requests()).hasSize(1);
    }

    @Test
    void callWithoutAnIdIsStillSentAgain() {
        proxy.replaceResponses(1);
        assertThat(application.getBean(Orders.class).list()).isEqualTo("orders");
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("-", "-");
    }

    @Test
    void callOfASwitchedOffClientIsStillSentAgainWithTheKeyOfItsCaller() {
        proxy.replaceResponses(1);
        assertThat(application.getBean(SwitchedOff.class).create("own", "tea")).isEqualTo("plain: tea");
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("own", "own");
    }

    @Test
    void strategyOfTheApplicationAppliesToAttempts() {
        withCustomizer(
                builder ->
                        builder.setRetryStrategy(new DefaultHttpRequestRetryStrategy(1, TimeValue.ZERO_MILLISECONDS)),
                client -> assertThat(requestsAfterA503(client, attempt())).isEqualTo(2));
    }

    @Test
    void retriesThatTheApplicationDisablesStayDisabled() {
        withCustomizer(
                HttpClientBuilder::disableAutomaticRetries,
                client -> assertThat(requestsAfterA503(client, post())).isEqualTo(1));
    }

    @Test
    void retriesThatWereDisabledBeforeStayDisabled() throws IOException {
        HttpClientBuilder builder = HttpClientBuilder.create().disableAutomaticRetries();
        application.getBean(HttpClientBuilderCustomizer.class).customize(builder);
        try (CloseableHttpClient client = builder.build()) {
            assertThat(requestsAfterA503(client, post())).isEqualTo(1);
        }
    }

    @Test
    void applicationWithoutTheClientHalfOrHttpClientHasNoCustomizer() {
        contexts.run(context -> assertThat(context).hasSingleBean(HttpClientBuilderCustomizer.class));
        contexts.withPropertyValues("idempotence.client.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean(HttpClientBuilderCustomizer.class));
        contexts.withClassLoader(new FilteredClassLoader("org.apache.hc"))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .hasBean("idempotenceFeignBuilderCustomizer")
                        .doesNotHaveBean("idempotenceHttpClientBuilderCustomizer"));
    }

    private void withCustomizer(HttpClientBuilderCustomizer ofTheApplication, Consumer<CloseableHttpClient> test) {
        contexts.withBean(HttpClientBuilderCustomizer.class, () -> ofTheApplication)
                .run(context -> test.accept(context.getBean(CloseableHttpClient.class)));
    }

    private static HttpPost post() {
        HttpPost post = new HttpPost(proxy.url() + "/plain");
        post.setEntity(new StringEntity("tea"));
        return post;
    }

    private static HttpPost attempt() {
        HttpPost post = post();
        post.setHeader("Idempotency-Key", "\"an-id\"");
        post.setHeader("Idempotency-Attempt", "1");
        return post;
    }

    private static int requestsAfterA503(CloseableHttpClient client, HttpPost post) {
        proxy.replaceResponses(1);
        try {
            client.execute(post, response -> null);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return proxy.requests().size();
    }
}
