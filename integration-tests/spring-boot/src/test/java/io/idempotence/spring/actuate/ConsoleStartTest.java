package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.spring.form.IdempotenceFormAutoConfiguration;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.web.servlet.HandlerMapping;

/** The console is off unless it is asked for, and not served to everybody by accident. */
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

    @Test
    void itIsRefusedWithoutSpringSecurity() {
        application
                .withPropertyValues("idempotence.console.enabled=true")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Property idempotence.console.enabled with value 'true' is invalid")
                        .hasMessageContaining("has no Spring Security that protects it")
                        .hasMessageContaining("idempotence.console.without-security=true"));
    }

    @Test
    void itIsServedWithoutSpringSecurityIfThatIsWanted() {
        application
                .withPropertyValues("idempotence.console.enabled=true", "idempotence.console.without-security=true")
                .run(context -> assertThat(context).hasSingleBean(HandlerMapping.class));
    }

    @Test
    void itNeedsFormTokensToWrite() {
        application
                .withPropertyValues(
                        "idempotence.console.enabled=true",
                        "idempotence.console.without-security=true",
                        "idempotence.console.writes=true",
                        "idempotence.form.enabled=false")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Remove idempotence.form.enabled=false"));
    }

    @Test
    void itsPathIsOneOfTheApplication() {
        application
                .withPropertyValues(
                        "idempotence.console.enabled=true",
                        "idempotence.console.without-security=true",
                        "idempotence.console.path=idempotence/")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("idempotence.console.path")
                        .hasMessageContaining("such as /idempotence"));
    }

    @Test
    void anUnknownPropertyFailsTheStart() {
        application
                .withPropertyValues("idempotence.console.enabled=true", "idempotence.console.write=true")
                .run(context ->
                        assertThat(context).getFailure().rootCause().hasMessageContaining("idempotence.console.write"));
    }
}
