package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.condition.RequestCondition;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;
import org.springframework.web.servlet.support.RequestContextUtils;

/** Handlers that conditions of the application choose, some of which do not work in front of the DispatcherServlet. */
@Tag("all")
@ExtendWith(OutputCaptureExtension.class)
class CustomRequestConditionsTest {
    private static final String[] FORM = {"Content-Type", "application/x-www-form-urlencoded"};

    private final String id = UUID.randomUUID().toString();

    enum Condition implements RequestCondition<Condition> {
        USES_A_BEAN_OF_THE_DISPATCHER_SERVLET {
            @Override
            boolean applies(HttpServletRequest request) {
                RequestContextUtils.getLocaleResolver(request).resolveLocale(request);
                return true;
            }
        },
        THROWS_IN_FILTERS {
            @Override
            boolean applies(HttpServletRequest request) {
                if (request.getAttribute(DispatcherServlet.FLASH_MAP_MANAGER_ATTRIBUTE) == null) {
                    throw new IllegalStateException("used in a filter");
                }
                return true;
            }
        },
        WRAPS_EXCEPTIONS {
            @Override
            boolean applies(HttpServletRequest request) {
                try {
                    return request.getParameter("pay") != null;
                } catch (RuntimeException e) {
                    throw new IllegalArgumentException("no parameters", e);
                }
            }
        },
        SWALLOWS_EXCEPTIONS {
            @Override
            boolean applies(HttpServletRequest request) {
                try {
                    return request.getParameter("pay") != null;
                } catch (RuntimeException e) {
                    return false;
                }
            }
        },
        READS_THE_BODY {
            @Override
            boolean applies(HttpServletRequest request) {
                try {
                    return request.getInputStream().read() >= 0;
                } catch (IOException | RuntimeException e) {
                    return false;
                }
            }
        };

        abstract boolean applies(HttpServletRequest request);

        @Override
        public Condition combine(Condition other) {
            return other;
        }

        @Override
        public Condition getMatchingCondition(HttpServletRequest request) {
            return applies(request) ? this : null;
        }

        @Override
        public int compareTo(Condition other, HttpServletRequest request) {
            return 0;
        }

        String path() {
            return "/" + name();
        }
    }

    @ResponseBody
    static class Payments {
        @Idempotent
        public String pay() {
            return "paid " + UUID.randomUUID();
        }

        @Idempotent
        public String transfer() {
            return "transferred " + UUID.randomUUID();
        }

        @Idempotent(false)
        public String preview() {
            return "preview";
        }

        public String search() {
            return "found";
        }
    }

    /** Each condition has a path of its own, on which it chooses between two handlers. */
    static class Application {
        @Bean
        Payments payments(RequestMappingHandlerMapping requestMappingHandlerMapping) throws NoSuchMethodException {
            Payments payments = new Payments();
            for (Condition each : Condition.values()) {
                for (String other : new String[] {"transfer", "preview", "search"}) {
                    String path = each.path() + "/" + other;
                    map(requestMappingHandlerMapping, payments, path, each, "pay");
                    map(requestMappingHandlerMapping, payments, path, null, other);
                }
            }
            return payments;
        }

        private static void map(
                RequestMappingHandlerMapping mapping,
                Payments payments,
                String path,
                Condition condition,
                String method)
                throws NoSuchMethodException {
            RequestMappingInfo.Builder info = RequestMappingInfo.paths(path).methods(RequestMethod.POST);
            if (condition != null) {
                info.customCondition(condition);
            }
            mapping.registerMapping(
                    info.options(mapping.getBuilderConfiguration()).build(),
                    payments,
                    Payments.class.getMethod(method));
        }
    }

    private static final TestServer SERVER = TestServer.start(Application.class);

    @AfterAll
    static void stop() {
        SERVER.close();
    }

    private static TestServer.Response post(String path, String id) {
        return SERVER.send("POST", path, id, "pay=1", FORM);
    }

    @ParameterizedTest
    @EnumSource
    void aHandlerThatMayBeChosenRunsOnce(Condition condition) {
        String path = condition.path() + "/transfer";
        assertThat(post(path, null).refusal()).isEqualTo("key-missing");
        TestServer.Response first = post(path, id);
        assertThat(first.body()).startsWith("paid");
        TestServer.Response retry = post(path, id);
        assertThat(retry.isReplayed()).isTrue();
        assertThat(retry.body()).isEqualTo(first.body());
    }

    @ParameterizedTest
    @EnumSource(names = {"USES_A_BEAN_OF_THE_DISPATCHER_SERVLET", "WRAPS_EXCEPTIONS", "SWALLOWS_EXCEPTIONS"})
    void aHandlerThatTheFilterCanLookUpHasItsOwnSettings(Condition condition) {
        for (String other : new String[] {"preview", "search"}) {
            String path = condition.path() + "/" + other;
            assertThat(post(path, null).refusal()).isEqualTo("key-missing");
            String own = id + other;
            TestServer.Response first = post(path, own);
            assertThat(first.body()).startsWith("paid");
            assertThat(post(path, own).body()).isEqualTo(first.body());
        }
        if (condition != Condition.USES_A_BEAN_OF_THE_DISPATCHER_SERVLET) {
            assertThat(SERVER.send("POST", condition.path() + "/preview", null, "else=1", FORM)
                            .body())
                    .isEqualTo("preview");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "THROWS_IN_FILTERS, preview",
        "THROWS_IN_FILTERS, search",
        "READS_THE_BODY, preview",
        "READS_THE_BODY, search"
    })
    void aHandlerThatTheFilterCannotLookUpDoesNotRunUnderTheSettingsOfAnother(
            Condition condition, String other, CapturedOutput output) {
        TestServer.Response response = post(condition.path() + "/" + other, id);

        assertThat(response.status()).isEqualTo(500);
        assertThat(output)
                .contains("cannot be looked up")
                .contains("Payments.pay")
                .contains("Payments." + other)
                .contains("map them to different paths, or give them the same @Idempotent");
    }

    @Test
    void otherPathsAreNotAffected() {
        assertThat(SERVER.send("POST", "/elsewhere", null, "pay=1", FORM).status())
                .isEqualTo(404);
    }
}
