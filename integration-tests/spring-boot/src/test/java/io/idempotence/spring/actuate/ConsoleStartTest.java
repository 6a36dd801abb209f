package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.spring.FailingStart;
import io.idempotence.spring.form.IdempotenceFormAutoConfiguration;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.servlet.HandlerMapping;

/** The console is off unless it is asked for, and not served to everybody by accident. */
@ExtendWith(OutputCaptureExtension.class)
class ConsoleStartTest {
    private final WebApplicationContextRunner application = new WebApplicationContextRunner()
            .withPropertyValues("idempotence.server.storage=memory")
            .withConfiguration(AutoConfigurations.of(
                    IdempotenceServerAutoConfiguration.class,
                    IdempotenceFormAutoConfiguration.class,
                    IdempotenceConsoleAutoConfiguration.class));

    @Test
    void itIsOffByDefault() {
        application.run(context -> assertThat(context).doesNotHaveBean(HandlerMapping.class));
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        IdempotenceServerAutoConfiguration.class,
        IdempotenceFormAutoConfiguration.class,
        IdempotenceConsoleAutoConfiguration.class
    })
    static class Application {}

    private static String reportOf(CapturedOutput output, String... properties) {
        return FailingStart.report(
                output,
                new Class<?>[] {Application.class},
                Stream.concat(
                                Stream.of("idempotence.server.storage=memory", "idempotence.console.enabled=true"),
                                Stream.of(properties))
                        .map(property -> "--" + property)
                        .toArray(String[]::new));
    }

    @Test
    void itIsRefusedWithoutSpringSecurity(CapturedOutput output) {
        assertThat(reportOf(output))
                .contains("The property idempotence.console.enabled has the value 'true' (")
                .contains("has no Spring Security that protects it.")
                .containsSubsequence(
                        "Action:",
                        "Add spring-boot-starter-security and give operators the role 'IDEMPOTENCE_OPERATOR', or set"
                                + " idempotence.console.without-security=true");
    }

    @Test
    void itIsServedWithoutSpringSecurityIfThatIsWanted() {
        application
                .withPropertyValues("idempotence.console.enabled=true", "idempotence.console.without-security=true")
                .run(context -> assertThat(context).hasSingleBean(HandlerMapping.class));
    }

    @Test
    void itNeedsFormTokensToWrite(CapturedOutput output) {
        assertThat(reportOf(
                        output,
                        "idempotence.console.without-security=true",
                        "idempotence.console.writes=true",
                        "idempotence.form.enabled=false"))
                .contains("The property idempotence.console.writes has the value 'true' (")
                .contains("protected by a form token, and these are switched off.")
                .containsSubsequence(
                        "Action:", "Remove idempotence.form.enabled=false, or idempotence.console.writes.");
    }

    @Test
    void itsPathIsOneOfTheApplication(CapturedOutput output) {
        assertThat(reportOf(
                        output, "idempotence.console.without-security=true", "idempotence.console.path=idempotence/"))
                .contains("The property idempotence.console.path has the value 'idempotence/' (")
                .contains("it must be a path such as /idempotence or /admin/idempotence, without a slash at its end.")
                .containsSubsequence("Action:", "Change the value of idempotence.console.path.");
    }

    @Test
    void anUnknownPropertyFailsTheStart(CapturedOutput output) {
        assertThat(reportOf(output, "idempotence.console.write=true"))
                .contains("There is no such property: idempotence.console.write = 'true' (")
                .containsSubsequence("Action:", "Nearest: idempotence.console.writes.");
    }
}
