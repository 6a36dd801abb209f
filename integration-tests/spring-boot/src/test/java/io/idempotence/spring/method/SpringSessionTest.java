package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import jakarta.servlet.http.HttpSession;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.session.MapSessionRepository;
import org.springframework.session.Session;
import org.springframework.session.config.annotation.web.http.EnableSpringHttpSession;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Sessions of Spring Session, whose filter is in front of the idempotence filter. */
class SpringSessionTest {
    private static final Map<String, Session> SESSIONS = new ConcurrentHashMap<>();
    private static final AtomicInteger RUNS = new AtomicInteger();
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @Configuration(proxyBeanMethods = false)
    @EnableSpringHttpSession
    @Import(Carts.class)
    static class Application {
        @Bean
        MapSessionRepository sessions() {
            return new MapSessionRepository(SESSIONS);
        }
    }

    @RestController
    static class Carts {
        @Idempotent
        @PostMapping("/carts")
        ResponseEntity<Void> open(HttpSession session) {
            session.setAttribute("items", 0);
            return ResponseEntity.status(303)
                    .header("Location", "/carts/" + RUNS.incrementAndGet())
                    .build();
        }

        @Idempotent
        @PostMapping("/items")
        String add(HttpSession session) {
            int items = (int) session.getAttribute("items") + 1;
            session.setAttribute("items", items);
            return "added " + items;
        }

        @Idempotent
        @PostMapping("/carts/end")
        String end(HttpSession session) {
            session.invalidate();
            return "ended";
        }

        @GetMapping("/items")
        String items(HttpSession session) {
            return session.getAttribute("items") + " items";
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

    /** Opens a session, and returns its cookie. */
    private static String session() {
        String cookie = server.post("/carts", UUID.randomUUID().toString()).header("Set-Cookie");
        return cookie.substring(0, cookie.indexOf(';'));
    }

    private static String items(String cookie) {
        return server.send("GET", "/items", null, "", "Cookie", cookie).body();
    }

    @Test
    void aRedirectThatOpensASessionIsReplayedWithoutTheSession() {
        TestServer.Response first = server.post("/carts", id);
        int sessions = SESSIONS.size();
        TestServer.Response retry = server.post("/carts", id);

        assertThat(first.status()).isEqualTo(303);
        assertThat(first.header("Set-Cookie")).startsWith("SESSION=");
        assertThat(retry.isReplayed()).isTrue();
        assertThat(retry.same()).isEqualTo(first.same());
        assertThat(retry.header("Set-Cookie"))
                .as("the sender of the ID does not get the session of another")
                .isNull();
        assertThat(SESSIONS).as("a replay opens no session").hasSize(sessions);
    }

    @Test
    void theSessionIsSavedWhenTheCallerHasTheResponseAndAReplayDoesNotChangeIt() {
        String cookie = session();

        assertThat(server.post("/items", id, "Cookie", cookie).body()).isEqualTo("added 1");
        assertThat(items(cookie)).isEqualTo("1 items");

        TestServer.Response retry = server.post("/items", id, "Cookie", cookie);
        assertThat(retry.isReplayed()).isTrue();
        assertThat(retry.body()).isEqualTo("added 1");
        assertThat(items(cookie)).isEqualTo("1 items");

        assertThat(server.post("/items", UUID.randomUUID().toString(), "Cookie", cookie)
                        .body())
                .isEqualTo("added 2");
    }

    @Test
    void aSessionThatTheHandlerEndedStaysEndedAfterAReplay() {
        String cookie = session();
        int sessions = SESSIONS.size();

        assertThat(server.post("/carts/end", id, "Cookie", cookie).body()).isEqualTo("ended");
        assertThat(SESSIONS).hasSize(sessions - 1);
        TestServer.Response retry = server.post("/carts/end", id, "Cookie", cookie);
        assertThat(retry.isReplayed()).isTrue();
        assertThat(SESSIONS).hasSize(sessions - 1);
    }
}
