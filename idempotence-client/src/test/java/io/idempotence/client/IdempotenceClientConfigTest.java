package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The settings of the client: their defaults, their sources, and which one counts. */
class IdempotenceClientConfigTest extends ClientConfigTestBase {
    @Test
    void defaultsAreTheDocumentedOnes() {
        IdempotenceClientConfig config = IdempotenceClientConfig.defaults();
        assertThat(config.headerStyle()).isEqualTo(Style.QUOTED);
        assertThat(config.methods()).containsExactlyInAnyOrder("POST", "PATCH");
        assertThat(config.deadline()).isEqualTo(Duration.ofSeconds(10));
        assertThat(config.maxAttempts()).isEqualTo(3);
        assertThat(config.waitBound()).isEqualTo(Duration.ofMillis(100));
        assertThat(config.multiplier()).isEqualTo(2);
        assertThat(config.maxWait()).isEqualTo(Duration.ofSeconds(2));
        assertThat(config.jitter()).isEqualTo(1);
        assertThat(config.statuses()).containsExactlyInAnyOrder(408, 425, 429, 500, 502, 503, 504);
        assertThat(config.preferWait()).isEqualTo(Duration.ofSeconds(5));
        assertThat(config.serverRetention()).isEqualTo(Duration.ofHours(24));
        assertThat(config.budget("a").available()).isEqualTo(500);
        assertThat(config.retryRegistry()).isEmpty();
        assertThat(config.listener()).isEmpty();
        assertThat(config.generator().generateId().value()).hasSize(36);
    }

    @Test
    void everyKeyCanBeInTheFile() {
        IdempotenceClientConfig config = file("""
                idempotence.client.header-style=bare
                idempotence.client.methods=post, put
                idempotence.client.generator.type=application
                idempotence.client.generator.application=orders
                idempotence.client.generator.node=7
                idempotence.client.deadline=2m
                idempotence.client.retry.max-attempts=5
                idempotence.client.retry.wait=10ms
                idempotence.client.retry.multiplier=1.5
                idempotence.client.retry.max-wait=PT0.5S
                idempotence.client.retry.jitter=0.25
                idempotence.client.retry.statuses=503,504
                idempotence.client.in-progress.prefer-wait=0s
                idempotence.client.server-retention=P7D
                idempotence.client.budget.capacity=10
                idempotence.client.budget.cost=2
                idempotence.client.budget.refund=3
                idempotence.client.clients.pay.ments.retry.max-attempts=1
                idempotence.server.whatever=not ours
                idempotence.cli.redis=redis.example:6379
                """);
        assertThat(config.headerStyle()).isEqualTo(Style.BARE);
        assertThat(config.methods()).containsExactly("POST", "PUT");
        assertThat(config.generator().generateId().value()).startsWith("orders-");
        assertThat(config.deadline()).isEqualTo(Duration.ofMinutes(2));
        assertThat(config.maxAttempts()).isEqualTo(5);
        assertThat(config.waitBound()).isEqualTo(Duration.ofMillis(10));
        assertThat(config.multiplier()).isEqualTo(1.5);
        assertThat(config.maxWait()).isEqualTo(Duration.ofMillis(500));
        assertThat(config.jitter()).isEqualTo(0.25);
        assertThat(config.statuses()).containsExactly(503, 504);
        assertThat(config.preferWait()).isZero();
        assertThat(config.serverRetention()).isEqualTo(Duration.ofDays(7));
        RetryBudget budget = config.budget("a");
        assertThat(budget.available()).isEqualTo(10);
        assertThat(budget.trySpend()).isTrue();
        assertThat(budget.available()).isEqualTo(8);
        assertThat(budget.trySpend()).isTrue();
        budget.refund();
        assertThat(budget.available()).isEqualTo(9);
        assertThat(config.forClient("pay.ments").maxAttempts()).isEqualTo(1);
        assertThat(config.forClient("pay.ments").deadline()).isEqualTo(Duration.ofMinutes(2));
        assertThat(config.forClient("other").maxAttempts()).isEqualTo(5);
    }

    @Test
    void environmentBeatsSystemPropertyBeatsFile() {
        String file = """
                idempotence.client.retry.max-attempts=2
                idempotence.client.deadline=2s
                idempotence.client.retry.jitter=0.2
                """;
        Map<String, String> system =
                Map.of("idempotence.client.retry.max-attempts", "4", "idempotence.client.deadline", "4s");
        Map<String, String> environment = Map.of("IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS", "6", "PATH", "/bin");
        IdempotenceClientConfig config = load(file, system, environment);
        assertThat(config.maxAttempts()).isEqualTo(6);
        assertThat(config.deadline()).isEqualTo(Duration.ofSeconds(4));
        assertThat(config.jitter()).isEqualTo(0.2);
    }

    @Test
    void builderBeatsWhatWasLoaded() {
        IdempotenceClientConfig config =
                load("", Map.of(), Map.of("IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS", "6")).toBuilder()
                        .maxAttempts(2)
                        .build();
        assertThat(config.maxAttempts()).isEqualTo(2);
    }

    @Test
    void builderBeatsWhatWasLoadedForOneClientOrMethod() {
        IdempotenceClientConfig loaded = load(
                "",
                Map.of(
                        "idempotence.client.clients.orders.retry.max-wait", "7s",
                        "idempotence.client.clients.orders.retry.max-attempts", "6",
                        "idempotence.client.clients.orders.deadline", "3s",
                        "idempotence.client.clients.orders#create.retry.max-attempts", "8"),
                Map.of());
        IdempotenceClientConfig config = loaded.toBuilder()
                .client("orders", own -> own.maxAttempts(1).maxWait(Duration.ofSeconds(4)))
                .client("orders#create", own -> own.maxAttempts(2))
                .build();
        assertThat(config.forClient("orders").maxAttempts()).isEqualTo(1);
        assertThat(config.forClient("orders").maxWait()).isEqualTo(Duration.ofSeconds(4));
        assertThat(config.forClient("orders").deadline()).isEqualTo(Duration.ofSeconds(3));
        assertThat(config.forMethod("orders", "create").maxAttempts()).isEqualTo(2);
    }

    @Test
    void methodSettingsOverrideClientSettingsWhichOverrideCommonOnes() {
        IdempotenceClientConfig config =
                load("""
                idempotence.client.retry.max-attempts=5
                idempotence.client.deadline=20s
                idempotence.client.clients.orders.deadline=5s
                idempotence.client.clients.orders#create.retry.max-attempts=1
                """, Map.of("idempotence.client.clients.orders#cancel.retry.max-attempts", "7"), Map.of());
        assertThat(config.forMethod("orders", "create").maxAttempts()).isEqualTo(1);
        assertThat(config.forMethod("orders", "create").deadline()).isEqualTo(Duration.ofSeconds(5));
        assertThat(config.forMethod("orders", "list").maxAttempts()).isEqualTo(5);
        assertThat(config.forMethod("orders", "cancel").maxAttempts()).isEqualTo(7);
        assertThat(config.forMethod("stock", "create").deadline()).isEqualTo(Duration.ofSeconds(20));
        IdempotenceClientConfig built = IdempotenceClientConfig.builder()
                .client("orders#create", own -> own.maxAttempts(9))
                .build();
        assertThat(built.forMethod("orders", "create").maxAttempts()).isEqualTo(9);
        assertThat(built.forClient("orders").maxAttempts()).isEqualTo(3);
        assertThat(built.toBuilder().build().forMethod("orders", "create").maxAttempts())
                .isEqualTo(9);
    }

    @Test
    void configsOfOneNodeShareTheSnowflakeGeneratorAsTwoWouldRepeatIds() {
        String file = "idempotence.client.generator.type=snowflake\nidempotence.client.generator.node=3\n";
        assertThat(file(file).generator()).isSameAs(file(file).generator());
    }

    @Test
    void budgetIsSharedByNameWithinAConfigAndItsClientViews() {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .client("orders", b -> b.budget(50, 5, 1))
                .build();
        assertThat(config.budget("orders").available()).isEqualTo(50);
        assertThat(config.budget("orders")).isSameAs(config.forClient("orders").budget("orders"));
        assertThat(config.budget("other")).isNotSameAs(config.budget("orders"));
        assertThat(config.toBuilder().build().budget("orders")).isNotSameAs(config.budget("orders"));
    }

    @Test
    void ownGeneratorIsUsed() {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .generator(() -> IdempotenceId.of("mine"))
                .methods("put")
                .build();
        assertThat(config.forClient("a").generator().generateId()).isEqualTo(IdempotenceId.of("mine"));
        assertThat(config.methods()).isEqualTo(Set.of("PUT"));
    }

    @Test
    void loadReadsTheRealSources() {
        assertThat(IdempotenceClientConfig.load().maxAttempts()).isEqualTo(3);
    }

    @Test
    void variablesOfTheOperatorsToolDoNotStopAConsumer() {
        Map<String, String> environment = Map.of(
                "IDEMPOTENCE_CLI_REDIS", "redis.example:6379",
                "IDEMPOTENCE_CLI_JDBC_PASSWORD", "secret",
                "IDEMPOTENCE_REDIS", "redis.example:6379",
                "IDEMPOTENCE_SERVER_LEASE", "30s",
                "IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS", "6");
        assertThat(load("", Map.of(), environment).maxAttempts()).isEqualTo(6);
        assertThat(load("", Map.of("idempotence.cli.redis", "redis.example:6379"), Map.of())
                        .maxAttempts())
                .isEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "idempotence.console.enabled",
                "idempotence.form.max-wait",
                "idempotence.log-correlation",
                "idempotence.transactions.release-after-commit",
                "idempotence.client.rest-clients"
            })
    void settingsOfTheSpringBootStarterDoNotStopAConsumer(String key) {
        assertThat(load("", Map.of(key, "any"), Map.of()).maxAttempts()).isEqualTo(3);
        assertThat(load(key + "=any", Map.of(), Map.of()).maxAttempts()).isEqualTo(3);
        assertThat(load("", Map.of(), Map.of("IDEMPOTENCE_CLIENT_REST_CLIENTS", "any"))
                        .maxAttempts())
                .isEqualTo(3);
    }

    /** Spring's spellings, and the brackets that its YAML needs. */
    @Test
    void settingsByKeyHaveRelaxedSpellings() {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .set("idempotence.client.retry.maxAttempts", "4", "a")
                .set("IDEMPOTENCE_CLIENT_RETRY_MAXWAIT", "3s", "b")
                .set("idempotence.client.server_retention", "7d", "c")
                .set("idempotence.client.clients.[order-service#create].retry.maxAttempts", "1", "d")
                .set("idempotence.client.clients[https://stock.example:8443].enabled", "false", "e")
                .build();
        assertThat(config.maxAttempts()).isEqualTo(4);
        assertThat(config.maxWait()).isEqualTo(Duration.ofSeconds(3));
        assertThat(config.serverRetention()).isEqualTo(Duration.ofDays(7));
        assertThat(config.forMethod("order-service", "create").maxAttempts()).isEqualTo(1);
        assertThat(config.forClient("https://stock.example:8443").enabled()).isFalse();
        assertThatThrownBy(() -> IdempotenceClientConfig.builder().set("idempotence.client.deadlin", "1s", "line 7"))
                .hasMessage(
                        "idempotence.client.deadlin (from line 7): unknown; did you mean idempotence.client.deadline?");
    }

    /** The prefix of the server half has as many characters. */
    @ParameterizedTest
    @ValueSource(strings = {"", "deadline", "idempotence.server.deadline", "idempotence-client-deadline"})
    void settingByAKeyWithoutThePrefixIsRefused(String key) {
        assertThatThrownBy(() -> IdempotenceClientConfig.builder().set(key, "1s", "line 7"))
                .isInstanceOf(IdempotenceClientConfigException.class)
                .hasMessage(key + " (from line 7): unknown; settings begin with idempotence.client.");
    }
}
