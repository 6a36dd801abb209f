package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.mock.web.MockServletContext;
import org.springframework.web.context.support.GenericWebApplicationContext;

/** The start of a web application that fails, as Spring Boot reports it. No web server is started. */
public final class FailingStart {
    private FailingStart() {}

    /**
     * Starts an application, and expects that this fails with a description and an action.
     *
     * @param arguments of the command line
     * @return everything that was printed from the report on
     */
    public static String report(CapturedOutput output, Class<?>[] sources, String... arguments) {
        SpringApplication application = new SpringApplication(sources);
        application.setWebApplicationType(WebApplicationType.SERVLET);
        application.setApplicationContextFactory(type -> new GenericWebApplicationContext(new MockServletContext()));
        int before = output.getAll().length();
        assertThatThrownBy(() -> application.run(arguments).close()).isNotNull();
        String report = output.getAll().substring(before);
        assertThat(report).contains("APPLICATION FAILED TO START", "Description:", "Action:");
        return report.substring(report.indexOf("APPLICATION FAILED TO START"));
    }
}
