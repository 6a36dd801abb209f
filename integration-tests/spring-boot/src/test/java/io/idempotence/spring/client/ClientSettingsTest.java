package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigException;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.internal.Causes;
import java.net.URL;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.core.io.support.SpringFactoriesLoader;

/** The settings {@code idempotence.client.*} of an application. */
class ClientSettingsTest {
    /** What the parser has in another form, or leaves to the starter. */
    private static final Set<String> OF_SPRING = Set.of("idempotence.client.clients", EnvironmentSettings.REST_CLIENTS);

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(IdempotenceClientAutoConfiguration.class));

    private ApplicationContextRunner yaml(String text) {
        return runner.withInitializer(context -> {
            try {
                new YamlPropertySourceLoader()
                        .load("application.yml", new ByteArrayResource(text.getBytes(), "application.yml"))
                        .forEach(source ->
                                context.getEnvironment().getPropertySources().addLast(source));
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        });
    }

    /** It failed the start of a test that sets another value. */
    @Test
    void aPlaceholderOfAValueThatAnotherReplacesNeedsNoValue() {
        yaml("idempotence.client.clients.orders.deadline: ${NOT_THERE}")
                .withPropertyValues("idempotence.client.clients.orders.deadline=2s")
                .run(context -> assertThat(context.getBean(IdempotenceClientConfig.class)
                                .forClient("orders")
                                .deadline())
                        .isEqualTo(Duration.ofSeconds(2)));
    }

    @Test
    void yamlSetsTheClientsAndTheirMethods() {
        yaml("""
                        wait-here: 20ms
                        idempotence.client:
                          headerStyle: bare
                          methods: [POST, PUT]
                          server_retention: 7d
                          retry:
                            wait: ${wait-here}
                            statuses:
                              - 503
                              - 504
                          clients:
                            orders:
                              deadline: 3s
                            orders#cancel:
                              retry.max-attempts: 5
                            "[https://stock.example:8443]":
                              enabled: false
                        """).run(context -> {
            IdempotenceClientConfig config = context.getBean(IdempotenceClientConfig.class);
            assertThat(config.headerStyle()).isEqualTo(Style.BARE);
            assertThat(config.methods()).containsExactlyInAnyOrder("POST", "PUT");
            assertThat(config.serverRetention()).isEqualTo(Duration.ofDays(7));
            assertThat(config.waitBound()).isEqualTo(Duration.ofMillis(20));
            assertThat(config.statuses()).containsExactlyInAnyOrder(503, 504);
            assertThat(config.forClient("orders").deadline()).isEqualTo(Duration.ofSeconds(3));
            assertThat(config.forMethod("orders", "cancel").maxAttempts()).isEqualTo(5);
            assertThat(config.forMethod("orders", "create").maxAttempts()).isEqualTo(3);
            assertThat(config.forClient("https://stock.example:8443").enabled()).isFalse();
        });
    }

    /** Boot writes the variable without underscores inside a key, this library with them. */
    @ParameterizedTest
    @CsvSource({"IDEMPOTENCE_CLIENT_RETRY_MAXATTEMPTS", "IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS"})
    void variableOfTheEnvironmentOverridesTheFile(String variable) {
        yaml("idempotence.client.retry.max-attempts: 5")
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new SystemEnvironmentPropertySource("systemEnvironment", Map.of(variable, "7"))))
                .run(context -> assertThat(
                                context.getBean(IdempotenceClientConfig.class).maxAttempts())
                        .isEqualTo(7));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "idempotence.client.retry.wiat=1s | did you mean idempotence.client.retry.wait?",
                "idempotence.client.deadline=soon | 'soon' cannot be read; allowed: a duration above 0",
                "idempotence.client.retry.max-attempts=0 | 0 is not allowed; allowed: 1 to 100",
                "idempotence.client.enabled=maybe | 'maybe' cannot be read; allowed: true or false",
                "idempotence.client.clients.orders.retries=3 | <key> is one of [enabled,",
                "idempotence.client.clients.orders#create.budget.cost=3 | a budget belongs to a client",
                "idempotence.client.retry.wait=3s | is longer than retry.max-wait 2s"
            })
    void wrongSettingFailsTheStartWithItsAnalysis(String property, String problem) {
        runner.withPropertyValues(property).run(context -> {
            FailureAnalysis analysis = analysis(context.getStartupFailure());
            String key = property.substring(0, property.indexOf('='));
            assertThat(analysis.getDescription()).contains(key).contains(problem);
            assertThat(analysis.getAction()).startsWith("Correct or remove " + key + " in property source 'test'");
        });
    }

    @Test
    void analysisContainsTheLineOfTheFile() {
        yaml("idempotence:\n  client:\n    deadline: 10\n")
                .run(context -> assertThat(analysis(context.getStartupFailure()).getDescription())
                        .contains("idempotence.client.deadline (from ")
                        .contains("[application.yml] - 3:15): '10' cannot be read"));
    }

    private static FailureAnalysis analysis(Throwable failure) {
        assertThat(failure).isNotNull();
        assertThat(Causes.has(failure, IdempotenceClientConfigException.class)).isTrue();
        return SpringFactoriesLoader.forDefaultResourceLocation()
                .load(FailureAnalyzer.class, (type, name, e) -> assertThat(name).startsWith("org.springframework."))
                .stream()
                .filter(ClientConfigFailureAnalyzer.class::isInstance)
                .map(analyzer -> analyzer.analyze(failure))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void nothingIsThereWhenItIsSwitchedOff() {
        runner.withPropertyValues("idempotence.client.enabled=false")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(IdempotenceClientConfig.class)
                        .doesNotHaveBean(FeignInstaller.class));
    }

    /** For an application that calls many services, and few that know the ID. */
    @Test
    void clientCanBeTheOnlyOneThatIsEnabled() {
        runner.withPropertyValues("idempotence.client.enabled=false", "idempotence.client.clients.orders.enabled=true")
                .run(context -> {
                    IdempotenceClientConfig config = context.getBean(IdempotenceClientConfig.class);
                    assertThat(config.enabled()).isFalse();
                    assertThat(config.forClient("orders").enabled()).isTrue();
                    assertThat(config.forClient("others").enabled()).isFalse();
                });
    }

    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void oneOfSeveralBeansIsUsedOnlyIfItIsPrimary(CapturedOutput output) {
        ApplicationContextRunner several = runner.withBean(
                        "someRetries", RetryRegistry.class, RetryRegistry::ofDefaults)
                .withBean("someIds", IdempotenceIdGenerator.class, () -> () -> new IdempotenceId("some"));
        several.withBean("otherRetries", RetryRegistry.class, RetryRegistry::ofDefaults)
                .withBean("otherIds", IdempotenceIdGenerator.class, () -> () -> new IdempotenceId("other"))
                .run(context -> {
                    IdempotenceClientConfig config = context.getBean(IdempotenceClientConfig.class);
                    assertThat(config.retryRegistry()).isEmpty();
                    assertThat(config.generator().generateId().value()).hasSize(36);
                    assertThat(output.toString()
                                    .lines()
                                    .filter(line -> line.contains("WARN") && line.contains("IdempotenceClient")))
                            .hasSize(2)
                            .anyMatch(line -> line.contains("[someRetries, otherRetries]"))
                            .anyMatch(line -> line.contains("[someIds, otherIds]"));
                });
        several.withBean("otherRetries", RetryRegistry.class, RetryRegistry::ofDefaults, own -> own.setPrimary(true))
                .withBean(
                        "otherIds",
                        IdempotenceIdGenerator.class,
                        () -> () -> new IdempotenceId("other"),
                        own -> own.setPrimary(true))
                .run(context -> {
                    IdempotenceClientConfig config = context.getBean(IdempotenceClientConfig.class);
                    assertThat(config.retryRegistry()).containsSame(context.getBean(RetryRegistry.class));
                    assertThat(config.generator().generateId().value()).isEqualTo("other");
                });
    }

    /** An application without any HTTP client of Spring has only the settings. */
    @Test
    void startsWithoutSpringWebAndSpringCloud() {
        runner.withClassLoader(new FilteredClassLoader(
                        "org.springframework.web",
                        "org.springframework.http",
                        "org.springframework.cloud",
                        "io.micrometer"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(IdempotenceClientConfig.class));
    }

    @Test
    void beanOfTheApplicationReplacesAllSettings() {
        IdempotenceClientConfig own = IdempotenceClientConfig.defaults();
        runner.withBean(IdempotenceClientConfig.class, () -> own)
                .run(context -> assertThat(context.getBean(IdempotenceClientConfig.class))
                        .isSameAs(own));
    }

    /** Completion in the IDE offers what the parser accepts, with its defaults. */
    @Test
    void metadataListsEveryKeyWithADefaultThatTheParserTakes() throws Exception {
        TreeSet<String> documented = new TreeSet<>();
        for (URL url : Collections.list(
                getClass().getClassLoader().getResources("META-INF/additional-spring-configuration-metadata.json"))) {
            for (JsonNode property : new ObjectMapper().readTree(url).get("properties")) {
                String name = property.get("name").asText();
                if (name.startsWith("idempotence.client.") && !OF_SPRING.contains(name)) {
                    documented.add(name.substring("idempotence.client.".length()));
                    assertThat(property.get("description").asText()).as(name).endsWith(".");
                    JsonNode standard = property.get("defaultValue");
                    if (standard != null) {
                        IdempotenceClientConfig.builder().set(name, text(standard), "the metadata");
                    }
                }
            }
        }
        assertThat(documented).isEqualTo(new TreeSet<>(keys()));
    }

    private static String text(JsonNode value) {
        return value.isArray()
                ? String.join(
                        ",",
                        Stream.of(value)
                                .flatMap(array -> {
                                    List<String> items = new java.util.ArrayList<>();
                                    array.forEach(item -> items.add(item.asText()));
                                    return items.stream();
                                })
                                .toList())
                : value.asText();
    }

    /** The message for an unknown key lists the known ones. */
    private static List<String> keys() {
        try {
            IdempotenceClientConfig.builder().set("idempotence.client.no.such.key.at.all", "1", "a test");
        } catch (IdempotenceClientConfigException e) {
            String message = e.getMessage();
            return List.of(message.substring(message.indexOf('[') + 1, message.lastIndexOf(']'))
                    .split(", "));
        }
        throw new AssertionError("an unknown key was accepted");
    }
}
