package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.idempotence.IdempotenceId;
import io.idempotence.Idempotent;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.ResultCodec;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The Actuator endpoint over HTTP, with every operation allowed. */
class EndpointTest {
    private static final IdempotencePolicy MARKS_UNKNOWN = IdempotencePolicy.defaults();

    private static ConfigurableApplicationContext application;
    private static URI endpoint;

    @SpringBootConfiguration
    @EnableAutoConfiguration
    static class Application {
        @RestController
        static class Payments {
            @PostMapping("/payments")
            @Idempotent(retention = "2d")
            String pay() {
                return "paid";
            }
        }

        @Bean
        JdbcDataSource database() {
            JdbcDataSource database = new JdbcDataSource();
            database.setURL("jdbc:h2:mem:endpoint;DB_CLOSE_DELAY=-1");
            return database;
        }

        /** With a place for what happens between two calls. */
        @Bean
        static BeanPostProcessor interruptible() {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessAfterInitialization(Object bean, String beanName) {
                    return bean instanceof IdempotenceStorage storage ? new FaultyStorage(storage) : bean;
                }
            };
        }

        @Bean
        SecurityFilterChain open(HttpSecurity security) throws Exception {
            return security.csrf(csrf -> csrf.disable())
                    .authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                    .build();
        }
    }

    @BeforeAll
    static void start() {
        application = started("management.endpoint.idempotence.access=unrestricted");
        endpoint = URI.create("http://localhost:" + application.getEnvironment().getProperty("local.server.port")
                + "/actuator/idempotence");
    }

    private static ConfigurableApplicationContext started(String... properties) {
        return new SpringApplicationBuilder(Application.class)
                .properties(
                        "server.port=0",
                        "idempotence.server.storage=jdbc",
                        "idempotence.server.jdbc.create-if-missing=true",
                        "server.address=localhost",
                        "spring.main.banner-mode=off",
                        "management.endpoints.web.exposure.include=idempotence")
                .properties(properties)
                .run();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @BeforeEach
    void forgetEverything() {
        IdempotenceStorage storage = application.getBean(IdempotenceStorage.class);
        storage.list("default").toList().forEach(record -> storage.delete(record.key()));
    }

    @Test
    void anIdIsFoundInEveryUse() throws Exception {
        idempotence().execute(new IdempotenceId("order-1"), () -> "done");
        idempotence().saveIfAbsent("order-1");

        String found = get("?id=order-1").body();

        assertThat(JsonPath.<List<String>>read(found, "$.records[*].kind")).containsExactly("execute", "saved");
        assertThat(JsonPath.<List<String>>read(found, "$.records[*].state"))
                .containsExactly("completed", "in-progress");
        assertThat(found).doesNotContain("done");
    }

    @Test
    void aDamagedRecordIsReportedAndHidesNoOther() throws Exception {
        idempotence().execute(new IdempotenceId("order-1"), () -> "done");
        String key = JsonPath.<List<String>>read(get("?id=order-1").body(), "$.records[*].key")
                .get(0);
        new JdbcTemplate(application.getBean(JdbcDataSource.class)).update("update idempotence_record set format = 9");
        idempotence().saveIfAbsent("order-1");

        String found = get("?id=order-1").body();
        assertThat(JsonPath.<List<String>>read(found, "$.records[*].kind")).containsExactly("saved");
        assertThat(JsonPath.<List<String>>read(found, "$.unreadable[*].kind")).containsExactly("execute");
        assertThat(JsonPath.<List<String>>read(found, "$.unreadable[*].key")).containsExactly(key);
        assertThat(JsonPath.<String>read(found, "$.unreadable[0].message")).contains("its format is 9");
        assertThat(get("/" + key).body()).contains("\"state\":\"unreadable\"", "its format is 9");
        assertThat(send("POST", "/" + key, "{\"as\":\"applied\",\"fence\":1}").body())
                .contains("its format is 9");
        assertThat(send("DELETE", "/" + key, "").body()).contains("\"deleted\":false", "a newer version");
        assertThat(send("DELETE", "/" + key + "?force=true", "").body()).contains("\"deleted\":true");
    }

    @Test
    void anIdIsFoundByItsScopeAndOperation() throws Exception {
        IdempotentCall call =
                IdempotentCall.of("ship", new IdempotenceId("order-1")).withScope("acme");
        idempotence().execute(call, MARKS_UNKNOWN, ResultCodec.text(), execution -> "done");

        assertThat(JsonPath.<List<?>>read(get("?id=order-1").body(), "$.records"))
                .isEmpty();
        assertThat(JsonPath.<List<?>>read(
                        get("?id=order-1&scope=acme&operation=ship").body(), "$.records"))
                .hasSize(1);
    }

    @Test
    void uncertainRecordsAreListedPageByPageEachOnce() throws Exception {
        for (int i = 0; i < 5; i++) {
            unknown("payment-" + i);
        }
        idempotence().execute(new IdempotenceId("fine"), () -> "done");

        Set<String> keys = new HashSet<>();
        String page = get("?limit=2").body();
        int pages = 1;
        keys.addAll(JsonPath.<List<String>>read(page, "$.records[*].key"));
        while (page.contains("\"next\"")) {
            page = get("?limit=2&after=" + JsonPath.read(page, "$.next")).body();
            pages++;
            assertThat(keys).doesNotContainAnyElementsOf(JsonPath.<List<String>>read(page, "$.records[*].key"));
            keys.addAll(JsonPath.<List<String>>read(page, "$.records[*].key"));
        }

        assertThat(pages).isEqualTo(3);
        assertThat(keys).hasSize(5);
        assertThat(JsonPath.<List<?>>read(get("?state=completed").body(), "$.records"))
                .hasSize(1);
        assertThat(JsonPath.<List<?>>read(get("?state=all&limit=1000").body(), "$.records"))
                .hasSize(6);
    }

    @Test
    void recordsAreCounted() throws Exception {
        unknown("payment-1");
        idempotence().execute(new IdempotenceId("fine"), () -> "done");

        String stats = get("/stats").body();

        assertThat(JsonPath.<Integer>read(stats, "$.records.unknown")).isEqualTo(1);
        assertThat(JsonPath.<Integer>read(stats, "$.records.completed")).isEqualTo(1);
        assertThat(JsonPath.<Integer>read(stats, "$.records.abandoned")).isZero();
        assertThat(JsonPath.<String>read(stats, "$.oldestUncertain.state")).isEqualTo("unknown");
    }

    @Test
    void protectedOperationsAreListed() throws Exception {
        String operations = get("/operations").body();

        assertThat(JsonPath.<List<String>>read(operations, "$.operations[0].paths"))
                .containsExactly("/payments");
        assertThat(JsonPath.<String>read(operations, "$.operations[0].settings.retention.value"))
                .isEqualTo("2d");
    }

    @Test
    void anUncertainRecordIsResolvedOnceAsThePersonSawIt() throws Exception {
        String key = unknown("payment-1");

        assertThat(send("POST", "/" + key, "{\"as\":\"applied\"}").body())
                .contains("\"resolved\":false", "fence is missing; give that of the record as you saw it");
        assertThat(send("POST", "/" + key, "{\"as\":\"applied\",\"fence\":7}").body())
                .contains("\"resolved\":false", "the record has changed since it was read");
        assertThat(send("POST", "/" + key, "{\"as\":\"applied\",\"fence\":1}").body())
                .contains("\"resolved\":true", "it never runs again", "\"state\":\"completed\"");
        assertThat(send("POST", "/" + key, "{\"as\":\"not-applied\",\"fence\":1}")
                        .body())
                .contains("\"resolved\":false", "only an abandoned or unknown record can be resolved");
    }

    @Test
    void aRecordResolvedAsNotAppliedRunsAgain() throws Exception {
        String key = unknown("payment-1");

        send("POST", "/" + key, "{\"as\":\"not-applied\",\"fence\":1}");

        assertThat(idempotence().execute(new IdempotenceId("payment-1"), () -> "paid"))
                .isEqualTo("paid");
    }

    @Test
    void anUncertainRecordIsDeletedByForceOnly() throws Exception {
        String key = unknown("payment-1");

        assertThat(send("DELETE", "/" + key, "").body()).contains("\"deleted\":false", "its outcome is unknown");
        assertThat(send("DELETE", "/" + key + "?force=true&fence=1", "").body()).contains("\"deleted\":true");
        assertThat(get("/" + key).statusCode()).isEqualTo(404);
    }

    /** A DELETE removed it, and the next retry paid again. */
    @Test
    void aCompletedRecordIsDeletedByForceOnly() throws Exception {
        String key = idempotence()
                .execute(
                        new IdempotenceId("payment-1"),
                        ResultCodec.text(),
                        execution -> execution.key().value());

        assertThat(send("DELETE", "/" + key, "").body()).contains("\"deleted\":false", "its operation is done");
        assertThat(send("DELETE", "/" + key + "?force=true&fence=1", "").body()).contains("\"deleted\":true");
        assertThat(get("/" + key).statusCode()).isEqualTo(404);
    }

    /** A colleague resolved it since the person looked, and its next attempt runs. */
    @Test
    void aRecordThatWasClaimedAgainSinceItWasSeenIsNotDeletedByForce() throws Exception {
        String key = unknown("payment-1");
        send("POST", "/" + key, "{\"as\":\"not-applied\",\"fence\":1}");
        Claims.claim(application.getBean(IdempotenceStorage.class), StorageKey.parse(key));

        assertThat(send("DELETE", "/" + key + "?force=true", "").body())
                .contains("\"deleted\":false", "the fence of the record as you saw it");
        assertThat(send("DELETE", "/" + key + "?force=true&fence=1", "").body())
                .contains("\"deleted\":false", "the record has changed since it was read, and is in-progress now");
        assertThat(get("/" + key).body()).contains("\"state\":\"in-progress\"", "\"fence\":2");
        assertThat(send("DELETE", "/" + key + "?force=true&fence=2", "").body()).contains("\"deleted\":true");
    }

    /** It was deleted while its operation ran, and the next duplicate ran the operation a second time. */
    @Test
    void aRecordThatIsClaimedAgainBetweenTheLookAndTheDeletionIsNotDeleted() throws Exception {
        String key = unknown("payment-1");
        send("POST", "/" + key, "{\"as\":\"not-applied\",\"fence\":1}");
        FaultyStorage storage = (FaultyStorage) application.getBean(IdempotenceStorage.class);
        storage.before((call, deleted) -> {
            if (call == FaultyStorage.Call.DELETE || call == FaultyStorage.Call.DELETE_UNCHANGED) {
                Claims.claim(storage, deleted);
            }
        });
        HttpResponse<String> response;
        try {
            response = send("DELETE", "/" + key, "");
        } finally {
            storage.before((call, any) -> {});
        }

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(JsonPath.<Boolean>read(response.body(), "$.deleted")).isFalse();
        assertThat(JsonPath.<String>read(response.body(), "$.message"))
                .contains("nothing was deleted: the record has changed since it was read, and is in-progress now");
        assertThat(JsonPath.<String>read(response.body(), "$.record.state")).isEqualTo("in-progress");
        assertThat(get("/" + key).body()).contains("\"state\":\"in-progress\"");
    }

    /** The response described the record, and did not say whether it was deleted. */
    @Test
    void aRecordThatIsDamagedBetweenTheLookAndTheDeletionIsReportedAsNotDeleted() throws Exception {
        String key = unknown("payment-1");
        FaultyStorage storage = (FaultyStorage) application.getBean(IdempotenceStorage.class);
        storage.before((call, any) -> {
            if (call == FaultyStorage.Call.DELETE_UNCHANGED) {
                throw new CorruptRecordException("the record has an unknown format");
            }
        });
        String body;
        try {
            body = send("DELETE", "/" + key + "?force=true&fence=1", "").body();
        } finally {
            storage.before((call, any) -> {});
        }

        assertThat(JsonPath.<Boolean>read(body, "$.deleted")).isFalse();
        assertThat(JsonPath.<String>read(body, "$.message")).contains("nothing was deleted", "unknown format");
    }

    @Test
    void aSavedIdIsDeletedByForceOnly() throws Exception {
        idempotence().saveIfAbsent("order-1");
        String key = JsonPath.<List<String>>read(get("?id=order-1").body(), "$.records[*].key")
                .get(0);

        assertThat(send("DELETE", "/" + key, "").body()).contains("\"deleted\":false", "it is a saved ID");
        assertThat(send("DELETE", "/" + key + "?force=true&fence=1", "").body()).contains("\"deleted\":true");
    }

    @Test
    void badInputIsABadRequest() throws Exception {
        String key = unknown("payment-1");

        assertThat(get("?state=lost").statusCode()).isEqualTo(400);
        assertThat(get("?limit=0").statusCode()).isEqualTo(400);
        assertThat(get("?olderThan=5m&state=completed").statusCode()).isEqualTo(400);
        assertThat(get("?principal=anna").statusCode()).isEqualTo(400);
        assertThat(get("?id=%C3%A4").statusCode()).isEqualTo(400);
        assertThat(get("/idem:other").statusCode()).isEqualTo(400);
        assertThat(get("/" + key.replace("default", "other")).statusCode()).isEqualTo(400);
        assertThat(send("POST", "/" + key, "{\"as\":\"done\"}").statusCode()).isEqualTo(400);
    }

    @Test
    void nothingIsChangedUnlessThatIsAllowed() throws Exception {
        try (ConfigurableApplicationContext usual = started()) {
            URI readOnly = URI.create("http://localhost:"
                    + usual.getEnvironment().getProperty("local.server.port") + "/actuator/idempotence");
            String key = "/" + "idem:default:" + "x".repeat(43);
            assertThat(send(readOnly, "GET", "", "").statusCode()).isEqualTo(200);
            assertThat(send(readOnly, "POST", key, "{\"as\":\"applied\"}").statusCode())
                    .isEqualTo(405);
            assertThat(send(readOnly, "DELETE", key, "").statusCode()).isEqualTo(405);
        }
    }

    private static Idempotence idempotence() {
        return application.getBean(Idempotence.class);
    }

    /** Leaves an unknown record behind, and returns its key. */
    private static String unknown(String id) throws Exception {
        return idempotence().execute(new IdempotenceId(id), ResultCodec.text(), execution -> {
            execution.markUnknown();
            return execution.key().value();
        });
    }

    private static HttpResponse<String> get(String path) throws Exception {
        return send("GET", path, "");
    }

    private static HttpResponse<String> send(String method, String path, String body) throws Exception {
        return send(endpoint, method, path, body);
    }

    private static HttpResponse<String> send(URI base, String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + path))
                .method(
                        method,
                        body.isEmpty()
                                ? HttpRequest.BodyPublishers.noBody()
                                : HttpRequest.BodyPublishers.ofString(body))
                .header("Content-Type", "application/json")
                .build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
    }
}
