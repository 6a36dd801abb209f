package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.spring.actuate.IdempotenceConsoleAutoConfiguration;
import io.idempotence.spring.client.IdempotenceClientAutoConfiguration;
import io.idempotence.spring.form.IdempotenceFormAutoConfiguration;
import io.idempotence.spring.method.IdempotenceMethodAutoConfiguration;
import io.idempotence.spring.method.IdempotenceMethodOffAutoConfiguration;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.PropertySource;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;

/** Every name below {@code idempotence} is checked, whether or not the part that reads it is active. */
@ExtendWith(OutputCaptureExtension.class)
class PropertiesCheckTest {
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        IdempotenceServerAutoConfiguration.class,
        IdempotenceMethodOffAutoConfiguration.class,
        IdempotenceMethodAutoConfiguration.class,
        IdempotenceFormAutoConfiguration.class,
        IdempotenceConsoleAutoConfiguration.class,
        IdempotenceClientAutoConfiguration.class
    })
    static class Application {}

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "idempotence.console.enable=true           | idempotence.console.enabled",
                "idempotence.console=true                  | idempotence.console",
                "idempotence.form.expire-after=1h          | idempotence.form.expires-after",
                "idempotence.transactions.never-release=no | idempotence.transactions.never-release-after-commit",
                "idempotence.server.policy.retension=7d    | idempotence.server.policy.retention",
                "idempotence.server.policy.retentions[0]=7d| idempotence.server.policy.retention",
                "idempotence.consol.enabled=true           | idempotence.console.enabled",
                "idempotence.consol.enable=true            | idempotence.console.enabled",
                "idempotence.cliant.deadline=3s            | idempotence.client.deadline",
                "idempotence.log-corelation=false          | idempotence.log-correlation",
                "idempotence.client.rest-client=all        | idempotence.client.rest-clients",
            })
    void anUnknownNameFailsTheStartAlsoIfItsPartIsOff(String property, String nearest, CapturedOutput output) {
        assertThat(report(output, property, "idempotence.server.enabled=false", "idempotence.client.enabled=false"))
                .contains("There is no such property: " + property.substring(0, property.indexOf('=')) + " = '")
                .containsSubsequence("Action:", "Remove it, or correct its name. Nearest: " + nearest);
    }

    @Test
    void settingsOfClientsAreCheckedAlsoIfTheyAreOff(CapturedOutput output) {
        assertThat(report(output, "idempotence.client.enabled=false", "idempotence.client.dead-line-of-all=3s"))
                .contains("A setting of the idempotence client is wrong.", "idempotence.client.dead-line-of-all");
    }

    @Test
    void aNameOfTheApplicationNeedsAnotherPrefix(CapturedOutput output) {
        assertThat(report(output, "idempotence.warehouse.place=Hamburg"))
                .contains("A property of the application's own needs another prefix than idempotence.");
    }

    @Test
    void aValueThatMayBeSecretIsNotShown(CapturedOutput output) {
        assertThat(report(output, "idempotence.server.redis.password=sesame"))
                .contains("idempotence.server.redis.password (")
                .doesNotContain("sesame");
        assertThat(report(output, "idempotence.server.redis.url=redis://:open@cache:6379"))
                .contains("idempotence.server.redis.url (")
                .doesNotContain("open@");
    }

    @Test
    void aMessageMayQuoteADurationThatIsMalformed(CapturedOutput output) {
        assertThat(report(output, "idempotence.server.waits=PT1M5H")).contains("idempotence.server.waits = 'PT1M5H'");
    }

    @Configuration(proxyBeanMethods = false)
    @PropertySource("classpath:misspelt.properties")
    static class WithFile extends Application {}

    @Test
    void aFileThatAConfigurationAddsIsChecked(CapturedOutput output) {
        assertThat(FailingStart.report(output, new Class<?>[] {WithFile.class}))
                .contains("idempotence.console.rolle = 'BOSS' (", "misspelt.properties");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "idempotence.form.enabled=perhaps    | true or false",
                "idempotence.console.enabled=perhaps | true or false",
                "idempotence.server.enabled=perhaps  | true or false",
                "idempotence.log-correlation=perhaps | true or false",
                "idempotence.transactions.never-release-after-commit=perhaps | true or false",
                "idempotence.client.rest-clients=perhaps | none, named, all",
            })
    void aValueThatCannotBeReadIsReportedWithWhatCan(String property, String allowed, CapturedOutput output) {
        assertThat(report(output, property, "idempotence.server.storage=memory"))
                .contains("'perhaps' (")
                .contains(allowed)
                .containsSubsequence("Action:", property.substring(0, property.indexOf('=')));
    }

    @ParameterizedTest
    @ValueSource(strings = {"false", "no", "off", "0", "NO"})
    void everyWordForFalseSwitchesThingsOff(String no) {
        try (ConfigurableApplicationContext context = start("server.enabled", no, "client.enabled", no)) {
            assertThat(context.getBeanNamesForType(Idempotence.class)).isEmpty();
            assertThat(context.containsBean("idempotenceClientConfig")).isFalse();
            assertThat(context.containsBean("idempotenceUnprotectedOperations")).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "yes", "on", "1"})
    void everyWordForTrueSwitchesThingsOn(String yes) {
        try (ConfigurableApplicationContext context = start("server.enabled", yes, "client.enabled", yes)) {
            assertThat(context.containsBean("idempotence")).isTrue();
            assertThat(context.containsBean("idempotenceClientConfig")).isTrue();
        }
    }

    @Test
    void namesMayBeSpeltAsSpringAllows() {
        start(
                        "server.maxWait", "9s",
                        "server.paths[0]", "/orders",
                        "server.keep_headers", "X-Order",
                        "console.questions[POST /payments/*]", "Was it booked?",
                        "client.clients.[orders#cancel].deadline", "3s",
                        "client.clients.stock.enabled", "on",
                        "client.restClients", "none",
                        "cli.redis", "cache:6379",
                        "form", "")
                .close();
    }

    @Test
    void aSwitchedOffClientMayHavePlaceholdersWithoutAValue() {
        start("client.enabled", "false", "client.deadline", "${nowhere}").close();
    }

    /** Without a web server, and as in a file of properties. */
    private static ConfigurableApplicationContext start(String... properties) {
        Map<String, Object> file = new LinkedHashMap<>(Map.of("idempotence.server.storage", "memory"));
        for (int i = 0; i < properties.length; i += 2) {
            file.put("idempotence." + properties[i], properties[i + 1]);
        }
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().addFirst(new MapPropertySource("file", file));
        return new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .environment(environment)
                .run();
    }

    private static String report(CapturedOutput output, String... properties) {
        String[] arguments = new String[properties.length];
        for (int i = 0; i < properties.length; i++) {
            arguments[i] = "--" + properties[i];
        }
        return FailingStart.report(output, new Class<?>[] {Application.class}, arguments);
    }
}
