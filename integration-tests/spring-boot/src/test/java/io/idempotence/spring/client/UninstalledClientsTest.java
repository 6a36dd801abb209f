package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import java.net.URI;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.http.HttpMethod;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.service.annotation.DeleteExchange;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.service.annotation.HttpExchange;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;

/** HTTP service clients over a {@code RestClient} that nobody gave to the starter. Their calls carry no ID, which was never said. */
@ExtendWith(OutputCaptureExtension.class)
class UninstalledClientsTest {
    private static final String WARNING = "has no client half";
    private static LossyProxy proxy;

    interface Orders {
        @PostExchange("/orders")
        String create(@RequestBody String order);

        @PostExchange("/plain")
        @Idempotent(false)
        String createPlain(@RequestBody String order);

        @PostExchange("/nothing-is-here")
        String fail(@RequestBody String order);

        @PostExchange("/orders")
        String createWithId(@RequestHeader("Idempotency-Key") String id, @RequestBody String order);

        @PostExchange("http://127.0.0.1/two words")
        String createElsewhere(URI elsewhere, @RequestBody String order);

        @PostExchange(url = "/orders", contentType = "application/pdf")
        String createDocument(@RequestBody List<String> order);

        @HttpExchange("/orders")
        String exchange(HttpMethod method, @RequestBody String order);

        @GetExchange("/orders")
        String list();

        @DeleteExchange("/orders/7")
        void cancel();
    }

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(IdempotenceClientAutoConfiguration.class))
            .withBean("orders", Orders.class, () -> client(RestClient.builder()));

    private static Orders client(RestClient.Builder builder) {
        return HttpServiceProxyFactory.builderFor(
                        RestClientAdapter.create(builder.baseUrl(proxy.url()).build()))
                .build()
                .createClient(Orders.class);
    }

    @BeforeAll
    static void start() {
        proxy = LossyProxy.before(OrdersProvider.shared().port());
    }

    @AfterAll
    static void stop() throws Exception {
        proxy.close();
    }

    private static int warnings(CapturedOutput output) {
        return output.getAll().split(WARNING, -1).length - 1;
    }

    private void with(Consumer<Orders> calls, String... properties) {
        runner.withPropertyValues(properties).run(context -> calls.accept(context.getBean(Orders.class)));
    }

    @Test
    void theFirstCallThatShouldCarryAnIdIsWarnedOf(CapturedOutput output) {
        with(orders -> {
            orders.list();
            assertThat(warnings(output)).isZero();
            orders.create("tea");
            assertThat(output).contains("WARN", "Orders.create", "RestClient.Builder", "IdempotentRestClient.install");
            orders.create("tea");
            assertThat(warnings(output)).isEqualTo(1);
        });
    }

    @Test
    void aCallWhoseMethodIsAnArgumentIsACall(CapturedOutput output) {
        with(orders -> {
            assertThatThrownBy(() -> orders.exchange(HttpMethod.PUT, "tea"));
            assertThat(warnings(output)).as("PUT carries no ID").isZero();
            orders.exchange(HttpMethod.POST, "tea");
        });
        assertThat(warnings(output)).isEqualTo(1);
    }

    @Test
    void aCallThatFailsIsACall(CapturedOutput output) {
        with(orders -> assertThatThrownBy(() -> orders.fail("tea")).isInstanceOf(HttpClientErrorException.class));
        assertThat(warnings(output)).isEqualTo(1);
    }

    @Test
    void aCallThatCarriesNoIdAnywayIsFine(CapturedOutput output) {
        with(orders -> {
            orders.list();
            orders.cancel();
            orders.createPlain("tea");
        });
        assertThat(warnings(output)).isZero();
    }

    @Test
    void aCallWithAnIdOfTheCallersIsFine(CapturedOutput output) {
        with(orders -> orders.createWithId("\"1\"", "tea"));
        assertThat(warnings(output)).isZero();
    }

    @Test
    void aCallWhoseBodyCannotBeWrittenWasNotSent(CapturedOutput output) {
        with(orders -> assertThatThrownBy(() -> orders.createDocument(List.of("tea")))
                .isInstanceOf(RestClientException.class));
        assertThat(warnings(output)).isZero();
    }

    @Test
    void aUrlThatIsATemplateFailsNoCall() {
        with(orders -> assertThat(orders.createElsewhere(URI.create(proxy.url() + "/orders"), "tea"))
                .isNotNull());
    }

    @Test
    void aClientThatIsSwitchedOffIsFine(CapturedOutput output) {
        with(
                orders -> orders.create("tea"),
                "idempotence.client.enabled=false",
                "idempotence.client.clients.other.enabled=true");
        with(orders -> orders.create("tea"), "idempotence.client.rest-clients=none");
        assertThat(warnings(output)).isZero();
    }

    @Test
    void aClientWithAClientHalfIsFine(CapturedOutput output) {
        runner.withBean(RestClient.Builder.class, RestClient::builder).run(context -> {
            Orders orders = (Orders) context.getAutowireCapableBeanFactory()
                    .applyBeanPostProcessorsAfterInitialization(
                            client(context.getBean(RestClient.Builder.class)), "installed");
            orders.create("tea");
        });
        assertThat(warnings(output)).isZero();
    }

    /** A layer inside of the proxy that lets no request through. */
    @Test
    void aCallThatWasRefusedBeforeItsRequestIsFine(CapturedOutput output) {
        runner.withBean(
                        "refusing",
                        Orders.class,
                        () -> client(RestClient.builder().requestInitializer(request -> {
                            throw new IllegalStateException("not now");
                        })))
                .run(context -> assertThatThrownBy(
                                () -> context.getBean("refusing", Orders.class).create("tea"))
                        .isInstanceOf(IllegalStateException.class));
        assertThat(warnings(output)).isZero();
    }
}
