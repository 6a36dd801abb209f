package io.idempotence.spring.method;

import io.idempotence.spring.method.FormButtonsTest.Buttons;
import io.idempotence.spring.method.FormButtonsTest.Form;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.embedded.jetty.JettyServletWebServerFactory;
import org.springframework.boot.web.embedded.undertow.UndertowServletWebServerFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

/** Jetty and Undertow parse the fields of a form as early as Tomcat does. */
class FormButtonsOnJettyAndUndertowTest {
    /** It needs a Jetty that Spring Boot has configured. */
    private static final String WITHOUT_WEB_SOCKETS = "--spring.autoconfigure.exclude="
            + "org.springframework.boot.autoconfigure.websocket.servlet.WebSocketServletAutoConfiguration";

    @ParameterizedTest
    @ValueSource(classes = {OnJetty.class, OnUndertow.class})
    void eachButtonOfAFormHasTheSettingsOfItsOwnHandler(Class<?> application) {
        try (TestServer server = TestServer.start(application, WITHOUT_WEB_SOCKETS)) {
            for (Form form : Form.values()) {
                FormButtonsTest.assertOwnSettings(form, server);
            }
        }
    }

    @Import(Buttons.class)
    static class OnJetty {
        @Bean
        JettyServletWebServerFactory server() {
            return new JettyServletWebServerFactory(0);
        }
    }

    @Import(Buttons.class)
    static class OnUndertow {
        @Bean
        UndertowServletWebServerFactory server() {
            return new UndertowServletWebServerFactory(0);
        }
    }
}
