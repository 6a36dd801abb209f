package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.server.IdempotentExecution;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.ResponseEntity;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.access.prepost.PreAuthorize;
import org.springframework.security.authentication.BadCredentialsException;
import org.springframework.security.config.annotation.method.configuration.EnableMethodSecurity;
import org.springframework.security.core.AuthenticationException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.config.annotation.InterceptorRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/** Callers that are turned away behind the filter. Their 401 or 403 was replayed after they had got the right. */
@Tag("boot-3")
class DeniedCallersTest {
    private static final AtomicBoolean MAY = new AtomicBoolean();
    private static final Map<String, AtomicInteger> RUNS = new ConcurrentHashMap<>();
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    private static String ran(String what) {
        return what + " "
                + RUNS.computeIfAbsent(what, any -> new AtomicInteger()).incrementAndGet();
    }

    private static void check() {
        if (!MAY.get()) {
            throw new AccessDeniedException("no");
        }
    }

    /** For an expression of Spring Security. */
    public static boolean mayCall() {
        return MAY.get();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableMethodSecurity
    static class Application implements WebMvcConfigurer {
        @RestController
        static class Handlers {
            @PreAuthorize("T(io.idempotence.spring.method.DeniedCallersTest).mayCall()")
            @Idempotent
            @PostMapping("/method-security")
            public String method() {
                return ran("method");
            }

            @PostMapping("/without-annotation")
            public String without() {
                check();
                return ran("without");
            }

            @PostMapping("/authentication")
            @Idempotent
            public String authentication() {
                if (!MAY.get()) {
                    throw new BadCredentialsException("who?");
                }
                return ran("authentication");
            }

            @PostMapping("/wrapped")
            @Idempotent
            public String wrapped() {
                try {
                    check();
                } catch (AccessDeniedException e) {
                    throw new IllegalArgumentException(e);
                }
                return ran("wrapped");
            }

            @PostMapping("/later")
            @Idempotent
            public Callable<String> later() {
                return () -> {
                    check();
                    return ran("later");
                };
            }

            @PostMapping("/everything")
            @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
            public String everything() {
                check();
                return ran("everything");
            }

            @PostMapping("/uncaught")
            @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
            public String uncaught() {
                if (!MAY.get()) {
                    throw new AccessDeniedException("uncaught");
                }
                return ran("uncaught");
            }

            @PostMapping("/kept")
            @Idempotent(keepOn = RuntimeException.class)
            public String kept() {
                check();
                return ran("kept");
            }

            @PostMapping("/careful")
            @Idempotent(failureRule = FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
            public String careful() {
                check();
                return ran("careful");
            }

            @PostMapping("/committed")
            @Idempotent
            public String committed() {
                IdempotentExecution.current().forEach(IdempotentExecution::tookEffect);
                check();
                return ran("committed");
            }

            @PostMapping("/business")
            @Idempotent
            public ResponseEntity<String> business() {
                return ResponseEntity.status(403).body(ran("business"));
            }

            @PostMapping("/guarded/{how}")
            @Idempotent(failureRule = FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
            public String guarded(@PathVariable("how") String how) {
                return ran("guarded " + how);
            }
        }

        @RestControllerAdvice
        static class Advice {
            @ExceptionHandler
            ResponseEntity<String> denied(AccessDeniedException e) {
                if ("uncaught".equals(e.getMessage())) {
                    throw e;
                }
                return ResponseEntity.status(403).body("denied");
            }

            @ExceptionHandler
            ResponseEntity<String> unknown(AuthenticationException e) {
                return ResponseEntity.status(401).body("unknown");
            }
        }

        @Override
        public void addInterceptors(InterceptorRegistry registry) {
            registry.addInterceptor(new Guard()).addPathPatterns("/guarded/*");
        }
    }

    /** An interceptor that checks rights itself. */
    private static final class Guard implements HandlerInterceptor {
        @Override
        public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler)
                throws IOException {
            if (MAY.get()) {
                return true;
            }
            String uri = request.getRequestURI();
            switch (uri.substring(uri.lastIndexOf('/') + 1)) {
                case "error" -> response.sendError(403);
                case "conflict" -> response.setStatus(409);
                case "committed" -> {
                    IdempotentExecution.current().forEach(IdempotentExecution::tookEffect);
                    response.setStatus(403);
                }
                case "decided" -> {
                    IdempotentExecution.current().forEach(IdempotentExecution::keep);
                    response.setStatus(403);
                }
                default -> {
                    response.setStatus(401);
                    response.getWriter().write("who?");
                }
            }
            return false;
        }
    }

    @BeforeAll
    static void start() {
        server = TestServer.start(Application.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @BeforeEach
    void mayNot() {
        MAY.set(false);
        RUNS.clear();
    }

    private TestServer.Response afterADenial(String path) {
        TestServer.Response denied = server.post(path, id);
        assertThat(denied.status()).isBetween(400, 499);
        MAY.set(true);
        return server.post(path, id);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/method-security",
                "/without-annotation",
                "/authentication",
                "/wrapped",
                "/later",
                "/everything",
                "/uncaught",
                "/guarded/status",
                "/guarded/error"
            })
    void aCallerThatWasDeniedRunsOnceItMay(String path) {
        assertThat(afterADenial(path).status()).isEqualTo(200);
        assertThat(server.post(path, id).isReplayed()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/kept", "/business", "/guarded/conflict", "/guarded/decided"})
    void whatTheApplicationDecidesIsKept(String path) {
        assertThat(afterADenial(path).isReplayed()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/committed", "/guarded/committed", "/careful"})
    void aDenialAfterACommitIsUnknown(String path) {
        assertThat(afterADenial(path).refusal()).isEqualTo("outcome-unknown");
    }

    @Test
    void aHandlerThatRanBeforeTheDenialIsNotReleased() {
        assertThat(server.post("/business", id).body()).isEqualTo("business 1");
        assertThat(server.post("/business", id).body()).isEqualTo("business 1");
    }
}
