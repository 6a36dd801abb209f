package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.github.resilience4j.retry.RetryRegistry;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ForkJoinPool;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Settings of the client that are refused, each with the key, the source and the fix. */
class RefusedClientConfigTest extends ClientConfigTestBase {
    @ParameterizedTest
    @CsvSource({
        "retry.max-atempts, retry.max-attempts",
        "header_style, header-style",
        "retry.waits, retry.wait",
        "budget.costs, budget.cost"
    })
    void unknownKeyIsRefusedWithTheNearest(String wrong, String right) {
        IdempotenceClientConfigException e = catchThrowableOfType(
                IdempotenceClientConfigException.class, () -> file("idempotence.client." + wrong + "=1"));
        assertThat(e.key()).isEqualTo("idempotence.client." + wrong);
        assertThat(e.source()).endsWith("idempotence.properties");
        assertThat(e).hasMessageContaining("did you mean idempotence.client." + right + "?");
    }

    @Test
    void unknownKeyFarFromAllListsWhatIsAllowed() {
        assertThatThrownBy(() -> file("idempotence.client.colour=red")).hasMessageContaining("header-style");
        assertThatThrownBy(() -> file("idempotence.client.clients.orders.colour=red"))
                .hasMessageContaining("clients.<name>.<key>");
        assertThatThrownBy(() -> file("idempotence.clinet.deadline=1s")).hasMessageContaining("idempotence.client.");
        assertThatThrownBy(() -> load("", Map.of(), Map.of("IDEMPOTENCE_CLIENT_DEADLNE", "1s")))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("environment variable")
                .hasMessageContaining("did you mean IDEMPOTENCE_CLIENT_DEADLINE?");
        assertThatThrownBy(() -> load("", Map.of("idempotence.client.dedline", "1s"), Map.of()))
                .hasMessageContaining("system property");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "SERVICE_HOST",
                "SERVICE_PORT",
                "SERVICE_PORT_HTTP",
                "PORT",
                "PORT_8080_TCP",
                "PORT_8080_TCP_ADDR"
            })
    void variablesThatKubernetesAddsForAServiceOfThatNameAreIgnored(String variable) {
        assertThat(load("", Map.of(), Map.of("IDEMPOTENCE_CLIENT_" + variable, "10.0.0.1")))
                .isNotNull();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '=',
            value = {
                "header-style=loud",
                "methods=GET",
                "methods=POST,FETCH",
                "generator.type=random",
                "generator.application=-x",
                "generator.node=1024",
                "generator.node=one",
                "deadline=0s",
                "deadline=-1s",
                "deadline=10",
                "deadline=10 parsecs",
                "retry.max-attempts=0",
                "retry.max-attempts=many",
                "retry.wait=-PT1S",
                "retry.multiplier=0.5",
                "retry.multiplier=NaN",
                "retry.max-wait=2d",
                "retry.jitter=1.1",
                "retry.statuses=200",
                "retry.statuses=5xx",
                "in-progress.prefer-wait=soon",
                "budget.capacity=-1",
                "budget.cost=x",
                "budget.refund=1.5"
            })
    void malformedValueIsRefusedWithKeySourceAndWhatIsAllowed(String key, String value) {
        IdempotenceClientConfigException e = catchThrowableOfType(
                IdempotenceClientConfigException.class, () -> file("idempotence.client." + key + "=" + value));
        assertThat(e.key()).isEqualTo("idempotence.client." + key);
        assertThat(e).hasMessageContaining("allowed: ").hasMessageContaining("idempotence.properties");
        assertThatThrownBy(() -> file("idempotence.client.clients.a." + key + "=" + value))
                .isInstanceOf(IdempotenceClientConfigException.class);
    }

    @Test
    void settingsOfOneClientThatBelongToAllAreRefusedWithTheFix() {
        Consumer<IdempotenceClientConfigBuilder> nested = own -> own.client("payments", other -> other.maxAttempts(2));
        Consumer<IdempotenceClientConfigBuilder> listener = own -> own.listener(event -> {});
        Consumer<IdempotenceClientConfigBuilder> executor = own -> own.executor(Runnable::run);
        Consumer<IdempotenceClientConfigBuilder> registry = own -> own.retryRegistry(RetryRegistry.ofDefaults());
        Consumer<IdempotenceClientConfigBuilder> usualExecutor = own -> own.executor(ForkJoinPool.commonPool());
        for (Consumer<IdempotenceClientConfigBuilder> wrong :
                List.of(nested, listener, executor, usualExecutor, registry)) {
            assertThatThrownBy(() -> IdempotenceClientConfig.builder().client("orders", wrong))
                    .isInstanceOf(IdempotenceClientConfigException.class)
                    .hasMessageContaining("client orders")
                    .hasMessageContaining("on the outer builder");
        }
    }

    @Test
    void settingsOfAMethodAreCheckedWhenTheConfigIsMade() {
        assertThatThrownBy(() -> file("idempotence.client.clients.orders#create.budget.capacity=3"))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("orders#create.budget.capacity")
                .hasMessageContaining("belongs to a client");
        assertThatThrownBy(() -> file("idempotence.client.clients.orders#create.retry.wait=3s"))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("for client orders#create");
    }

    @Test
    void deadlineMustEndBeforeTheServerForgets() {
        assertThatThrownBy(() ->
                        file("idempotence.client.server-retention=1m\nidempotence.client.clients.slow.deadline=60s\n"))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("deadline PT1M")
                .hasMessageContaining("server-retention PT1M");
    }

    @Test
    void buildChecksHowSettingsFit() {
        assertThatThrownBy(() -> file("idempotence.client.retry.wait=3s"))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("retry.max-wait");
        assertThatThrownBy(() -> file("idempotence.client.clients.a.retry.wait=3s"))
                .isInstanceOf(IdempotenceClientConfigException.class);
        assertThatThrownBy(() -> file("idempotence.client.generator.type=snowflake"))
                .hasMessageContaining("generator.node");
        assertThatThrownBy(() -> file("idempotence.client.generator.type=application"))
                .hasMessageContaining("generator.application");
        assertThatThrownBy(
                        () -> IdempotenceClientConfig.builder().budget(1, 5, 1).build())
                .hasMessageContaining("budget.cost");
    }

    @Test
    void settingsThatDoNotFitAreNamedWithTheirPlacesAndTheClient() {
        assertThatThrownBy(() -> file("idempotence.client.retry.wait=3s"))
                .isInstanceOfSatisfying(IdempotenceClientConfigException.class, e -> {
                    assertThat(e.key()).isEqualTo("idempotence.client.retry.wait");
                    assertThat(e.source()).endsWith("idempotence.properties");
                })
                .hasMessageContaining("retry.wait PT3S (file:")
                .hasMessageContaining("is longer than retry.max-wait PT2S (default); raise that one or lower this one")
                .hasMessageNotContaining("for client");
        assertThatThrownBy(() -> load(
                        "idempotence.client.clients.orders.retry.wait=900ms",
                        Map.of("idempotence.client.clients.orders.retry.max-wait", "500ms"),
                        Map.of()))
                .isInstanceOfSatisfying(
                        IdempotenceClientConfigException.class,
                        e -> assertThat(e.key()).isEqualTo("idempotence.client.clients.orders.retry.wait"))
                .hasMessageContaining("retry.max-wait PT0.5S (system property)")
                .hasMessageEndingWith(", for client orders");
        // The one that was given is the one to be found, though it is the other one that is too long.
        assertThatThrownBy(() -> load("", Map.of(), Map.of("IDEMPOTENCE_CLIENT_RETRY_MAX_WAIT", "50ms")))
                .isInstanceOfSatisfying(IdempotenceClientConfigException.class, e -> {
                    assertThat(e.key()).isEqualTo("IDEMPOTENCE_CLIENT_RETRY_MAX_WAIT");
                    assertThat(e.source()).isEqualTo("environment variable");
                })
                .hasMessageContaining("retry.wait PT0.1S (default) is longer than");
        assertThatThrownBy(() -> file("idempotence.client.clients.a.generator.type=snowflake"))
                .hasMessageContaining("idempotence.client.clients.a.generator.type")
                .hasMessageContaining("generator.node is missing, and generator.type snowflake (file:")
                .hasMessageEndingWith("needs it, 0 to 1023, for client a");
        assertThatThrownBy(
                        () -> IdempotenceClientConfig.builder().budget(1, 5, 1).build())
                .hasMessageContaining("budget.cost 5 (builder) is above budget.capacity 1 (builder)");
    }

    @Test
    void variableForOneClientIsRefusedWithThePlaceForSuchSettings() {
        assertThatThrownBy(
                        () -> load("", Map.of(), Map.of("IDEMPOTENCE_CLIENT_CLIENTS_ORDERS_RETRY_MAX_ATTEMPTS", "3")))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining(
                        "IDEMPOTENCE_CLIENT_CLIENTS_ORDERS_RETRY_MAX_ATTEMPTS (from environment variable)")
                .hasMessageContaining("idempotence.client.clients.<name>.<key>")
                .hasMessageContaining("idempotence.properties");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 101})
    void setterChecksItsValue(int attempts) {
        assertThatThrownBy(() -> IdempotenceClientConfig.builder().maxAttempts(attempts))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("builder")
                .hasMessageContaining("1 to 100");
    }

    @ParameterizedTest
    @ValueSource(strings = {"idempotence.deadline", "Idempotence.client.deadline", "idempotence-client.deadline"})
    void systemPropertyInOurNameButUnknownIsRefused(String key) {
        Properties system = new Properties();
        system.setProperty(key, "3s");
        assertThatThrownBy(() -> IdempotenceClientConfig.load(getClass().getClassLoader(), system, Map.of()))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining(key)
                .hasMessageContaining("idempotence.client.");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "IDEMPOTENCE_CLIENT_COLOUR",
                "IDEMPOTENCE_CLIENT",
                "idempotence_client_deadline",
                "idempotence.client.deadline",
                "IDEMPOTENCE-CLIENT-DEADLINE"
            })
    void unknownVariableUnderTheClientsPrefixIsRefusedWithTheFix(String variable) {
        assertThatThrownBy(() -> load("", Map.of(), Map.of(variable, "3s")))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining(variable)
                .hasMessageContaining("IDEMPOTENCE_CLIENT_");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "POST,,PATCH", ","})
    void methodsWithoutAMethodAreRefused(String methods) {
        Properties system = new Properties();
        system.setProperty("idempotence.client.methods", methods);
        assertThatThrownBy(() -> IdempotenceClientConfig.load(getClass().getClassLoader(), system, Map.of()))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessageContaining("POST,PATCH");
    }
}
