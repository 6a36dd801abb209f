package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.method.IdempotenceMethodAutoConfiguration;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;
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
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.mock.web.MockServletContext;
import org.springframework.web.context.support.GenericWebApplicationContext;

/** Wrong settings and beans of the server half. The start fails with Spring Boot's description and action. */
@ExtendWith(OutputCaptureExtension.class)
class ServerBadInputTest {
    @Test
    void anUnknownPropertyIsReportedWithItsNearestName(CapturedOutput output) {
        failsToStart(WithServer.class, "--idempotence.server.policy.retension=7d");

        assertThat(output)
                .contains("idempotence.server.policy.retension = '7d'")
                .contains("idempotence.server.policy.retention");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "idempotence.server.max-wait           | 11m      | maxWait must be 0 to 10 minutes, got 11m",
                "idempotence.server.max-wait           | soon     | a duration, such as 500ms, 10s, 5m or 24h",
                "idempotence.server.policy.lease       | 1ms      | lease must be 10ms to 24h, got 1ms",
                "idempotence.server.policy.retention   | 5s       | must not be shorter than lease",
                "idempotence.server.policy.on-abandoned| recover  | RECOVER needs a recovery rule",
                "idempotence.server.policy.failure-rule| keep     | release-on-system-failure, release-if-nothing-took-effect",
                "idempotence.server.storage            | mongo    | auto, redis, jedis, jdbc, memory",
                "idempotence.server.namespace          | a b      | namespace must be 1 to 64 characters",
                "idempotence.server.methods            | POST,GET | GET is a safe method; methods may be POST",
                "idempotence.server.max-request-body   | 2GB      | maxRequestBody must be 0 to 1073741824 bytes",
                "idempotence.server.max-memory         | 1KB      | maxMemory must be at least 1048576 bytes",
                "idempotence.server.max-waiting-duplicates| -1       | maxWaitingDuplicates must be 0 to 1000000",
                "idempotence.server.max-waiting-duplicates| many     | a whole number",
                "idempotence.server.require-id         | maybe    | true or false",
                "idempotence.server.keep-headers       | Set-Cookie | keepHeaders cannot keep 'Set-Cookie'",
                "idempotence.server.problem-base       | problems | problemBase must be an absolute URI",
                "idempotence.server.header.max-length  | 300      | the length of an ID must lie within 1 to 255",
                "idempotence.server.header.min-length  | 300      | the length of an ID must lie within 1 to 255",
                "idempotence.server.header.min-length  | 0        | the length of an ID must lie within 1 to 255",
                "idempotence.server.scope-headers      | X-Tenant X-Region | separate several names with commas",
                "idempotence.server.scope-headers      | X-Tenant, X-Region: | the name of a header, such as X-Tenant",
                "idempotence.server.redis.timeout      | 0s       | timeout must be 10ms to 1m, got 0s",
            })
    void aValueThatIsNotAllowedIsReportedWithWhatIs(
            String property, String value, String allowed, CapturedOutput output) {
        failsToStart(WithServer.class, "--" + property + "=" + value);

        assertThat(output)
                .contains("APPLICATION FAILED TO START")
                .contains(property)
                .contains("'" + value + "'")
                .contains(allowed)
                .contains("Action:");
    }

    @ParameterizedTest
    @CsvSource({"never-release-after-commit, perhaps", "never-releases, true"})
    void aWrongPropertyOfTransactionsFailsTheStartThoughBeansAreLazy(
            String property, String value, CapturedOutput output) {
        failsToStart(
                WithTransactions.class,
                "--spring.main.lazy-initialization=true",
                "--idempotence.transactions." + property + "=" + value);

        assertThat(output)
                .contains("APPLICATION FAILED TO START")
                .contains("idempotence.transactions." + property)
                .contains(value);
    }

    @Test
    void completionAfterTheResponseDoesNotGoWithRunningAgain(CapturedOutput output) {
        failsToStart(
                WithServer.class,
                "--idempotence.server.policy.completion=after-response",
                "--idempotence.server.policy.on-abandoned=re-execute");

        assertThat(output)
                .contains("idempotence.server.policy.completion")
                .contains("AFTER_RESPONSE cannot be combined with onAbandoned RE_EXECUTE");
    }

    @Test
    void twoConnectionFactoriesNeedAChoice(CapturedOutput output) {
        failsToStart(TwoRedis.class);

        assertThat(output)
                .contains("need one RedisConnectionFactory, and the application has several: one, two")
                .contains("Set idempotence.server.storage-bean to the name of one of them, or mark one as @Primary.");
    }

    @Test
    void twoStoragesNeedAChoice(CapturedOutput output) {
        failsToStart(TwoStorages.class);

        assertThat(output)
                .contains("declares several beans of IdempotenceStorage: first, second")
                .contains("Keep one, mark one as @Primary, or declare your own bean of Idempotence.");
    }

    @Test
    void twoPoliciesNeedAChoice(CapturedOutput output) {
        failsToStart(TwoPolicies.class);

        assertThat(output)
                .contains("declares several beans of IdempotencePolicy: brief, long")
                .contains("Keep one, mark one as @Primary, or declare your own bean of Idempotence.");
    }

    @Test
    void aStorageBeanAndAPropertyContradictEachOther(CapturedOutput output) {
        failsToStart(OneStorage.class, "--idempotence.server.storage=redis");

        assertThat(output)
                .contains("its own bean of IdempotenceStorage, and idempotence.server.storage chooses another storage")
                .contains("Remove the bean, or remove the property.");
    }

    @Test
    void aDatabaseNeedsADataSource(CapturedOutput output) {
        failsToStart(WithServer.class, "--idempotence.server.storage=jdbc");

        assertThat(output)
                .contains(
                        "idempotence.server.storage has the value 'jdbc', but the application has no bean of a DataSource")
                .contains("Add spring-boot-starter-jdbc and set spring.datasource.url");
    }

    @Test
    void inTransactionModeNeedsRecordsInADatabase(CapturedOutput output) {
        failsToStart(WithServer.class, "--idempotence.server.jdbc.in-transaction=true");

        assertThat(output)
                .contains("idempotence.server.jdbc.in-transaction")
                .contains("the records are not in a database, so nothing would set marks")
                .contains("Set idempotence.server.storage to jdbc, or remove the property.");
    }

    @Test
    void inTransactionModeOfAnOwnStorageIsSetInItsBuilder(CapturedOutput output) {
        failsToStart(OneStorage.class, "--idempotence.server.jdbc.in-transaction=true");

        assertThat(output)
                .contains("idempotence.server.jdbc.in-transaction")
                .contains("does not change the application's own bean of IdempotenceStorage")
                .contains("Remove the property, and call inTransaction() in the builder of the bean.");
    }

    @Test
    void redisNeedsAConnectionFactory(CapturedOutput output) {
        failsToStart(WithServer.class, "--idempotence.server.storage=redis");

        assertThat(output)
                .contains("'redis', but the application has no bean of a RedisConnectionFactory")
                .contains("Add spring-boot-starter-data-redis");
    }

    @Test
    void aMissingTableIsReportedWithBothWaysToGetIt(CapturedOutput output) {
        failsToStart(OneDatabase.class, "--idempotence.server.storage=jdbc");

        assertThat(output)
                .contains("The database cannot keep the records")
                .contains("idempotence_record")
                .contains("set idempotence.server.jdbc.create-if-missing to true");
    }

    @ParameterizedTest
    @CsvSource({"READER, the user lacks a right (90096)", "STRANGER, user or password refused (28000)"})
    void aDatabaseUserWithoutTheRightsFailsTheStart(String user, String reason, CapturedOutput output) {
        JdbcDataSource admin = OfUser.of("sa");
        JdbcIdempotenceStorage.builder(admin).createIfMissing().build().close();
        JdbcTemplate sql = new JdbcTemplate(admin);
        sql.execute("create user if not exists READER password 'sesame'");
        sql.execute("grant select on idempotence_record, idempotence_applied to READER");

        failsToStart(OfUser.class, "--idempotence.server.storage=jdbc", "--database-user=" + user);

        assertThat(output)
                .contains("The database user may not keep the records")
                .contains(reason)
                .contains("grant the user SELECT, INSERT, UPDATE and DELETE");
    }

    @Test
    void aNamedBeanMustExist(CapturedOutput output) {
        failsToStart(TwoRedis.class, "--idempotence.server.storage-bean=three");

        assertThat(output).contains("'three', but the beans that fit idempotence.server.storage are: one, two.");
    }

    @Test
    void memoryIsRefusedInProduction(CapturedOutput output) {
        failsToStart(WithServer.class, "--spring.profiles.active=production");

        assertThat(output)
                .contains("would keep its records in memory, because this application has no RedisConnectionFactory")
                .contains("The profile 'production' is active, in which that is forbidden")
                .contains("set idempotence.server.enabled to false");
    }

    @Test
    void aPathThatIsNoUrlPatternIsReported(CapturedOutput output) {
        assertThatThrownBy(
                        () -> Orders.start("--idempotence.server.storage=memory", "--idempotence.server.paths=orders")
                                .close())
                .isNotNull();

        assertThat(output)
                .contains("APPLICATION FAILED TO START")
                .contains("idempotence.server.paths", "'orders'")
                .contains("is not a URL pattern")
                .contains("Action:");
    }

    @Test
    void aFilterBeforeSpringSecurityIsRefused(CapturedOutput output) {
        assertThatThrownBy(() -> Orders.start(
                                "--idempotence.server.storage=memory",
                                "--idempotence.server.filter-order=-100",
                                "--spring.security.filter.order=-100")
                        .close())
                .isNotNull();

        assertThat(output)
                .contains("The idempotence filter has the order -100, and Spring Security's filter has -100")
                .contains("Set idempotence.server.filter-order to more than -100, or remove it");
    }

    static class Job {
        @Idempotent(id = "#id")
        public void run(String id) {}
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import(Job.class)
    static class WithoutRequests {}

    /** Only the filter checked it. */
    @ParameterizedTest
    @ValueSource(strings = {"-1s", "11m"})
    void theWaitOfAnApplicationWithoutRequestsIsReported(String wait, CapturedOutput output) {
        assertThatThrownBy(() -> new SpringApplicationBuilder(WithoutRequests.class)
                        .web(WebApplicationType.NONE)
                        .properties("spring.main.banner-mode=off", "idempotence.server.storage=memory")
                        .run("--idempotence.server.max-wait=" + wait)
                        .close())
                .isNotNull();

        assertThat(output)
                .contains("The property idempotence.server.max-wait has the value '" + wait + "'")
                .contains("maxWait must be 0 to 10 minutes, got " + wait);
    }

    /** No web server is started. */
    private static void failsToStart(Class<?> application, String... arguments) {
        assertThatThrownBy(() -> new SpringApplicationBuilder(application)
                        .web(WebApplicationType.SERVLET)
                        .contextFactory(type -> new GenericWebApplicationContext(new MockServletContext()))
                        .properties("spring.main.banner-mode=off")
                        .run(arguments)
                        .close())
                .isNotNull();
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class WithServer extends WebServer {}

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    static class WithTransactions extends WebServer {}

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class TwoRedis extends WebServer {
        @Bean
        RedisConnectionFactory one() {
            return new LettuceConnectionFactory("127.0.0.1", 1);
        }

        @Bean
        RedisConnectionFactory two() {
            return new LettuceConnectionFactory("127.0.0.1", 1);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class OneStorage extends WebServer {
        @Bean
        IdempotenceStorage first() {
            return IdempotenceStorage.inMemory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class TwoStorages extends OneStorage {
        @Bean
        IdempotenceStorage second() {
            return IdempotenceStorage.inMemory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class TwoPolicies extends OneStorage {
        @Bean("long")
        IdempotencePolicy longer() {
            return IdempotencePolicy.defaults();
        }

        @Bean
        IdempotencePolicy brief() {
            return IdempotencePolicy.defaults();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class OfUser extends WebServer {
        static JdbcDataSource of(String user) {
            JdbcDataSource database = new JdbcDataSource();
            // Only an administrator may keep it open.
            database.setURL("jdbc:h2:mem:rights" + (user.equals("sa") ? ";DB_CLOSE_DELAY=-1" : ""));
            database.setUser(user);
            database.setPassword(user.equals("sa") ? "" : "sesame");
            return database;
        }

        @Bean
        DataSource database(Environment environment) {
            return of(environment.getRequiredProperty("database-user"));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class OneDatabase extends WebServer {
        @Bean
        DataSource database() {
            JdbcDataSource database = new JdbcDataSource();
            database.setURL("jdbc:h2:mem:no-tables");
            return database;
        }
    }
}
