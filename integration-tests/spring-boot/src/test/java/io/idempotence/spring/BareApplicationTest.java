package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.StorageUnavailableException;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The starter works with Spring Boot alone: nothing that it supports is needed. */
class BareApplicationTest {
    @Test
    void startsWithoutServletsDriversAndTheRest() throws Exception {
        assertThat(ChildApplication.outputOf(
                        Application.class, ChildApplication.classPath("logback-", "jul-to-slf4j-", "log4j-")))
                .contains("saved true then false");
    }

    @Test
    void keepsRecordsInADatabaseWithoutSpringJdbc() throws Exception {
        assertThat(ChildApplication.outputOf(
                        OnDatabase.class, ChildApplication.classPath("logback-", "jul-to-slf4j-", "log4j-", "h2-")))
                .contains("records in the DataSource")
                .contains("saved true then false");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        public static void main(String[] arguments) {
            try (ConfigurableApplicationContext context = SpringApplication.run(Application.class, arguments)) {
                Idempotence idempotence = context.getBean(Idempotence.class);
                System.out.println("saved " + save(idempotence) + " then " + save(idempotence));
            }
        }
    }

    /** A database may still be connecting when a busy machine has started the application. */
    private static boolean save(Idempotence idempotence) {
        while (true) {
            try {
                return idempotence.saveIfAbsent("one");
            } catch (StorageUnavailableException e) {
                if (!e.nothingWritten()) {
                    throw e;
                }
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class OnDatabase {
        @Bean
        DataSource database() {
            JdbcDataSource database = new JdbcDataSource();
            database.setURL("jdbc:h2:mem:bare;DB_CLOSE_DELAY=-1");
            return database;
        }

        public static void main(String[] arguments) {
            String[] properties = {
                "--idempotence.server.storage=jdbc", "--idempotence.server.jdbc.create-if-missing=true"
            };
            try (ConfigurableApplicationContext context = SpringApplication.run(OnDatabase.class, properties)) {
                Idempotence idempotence = context.getBean(Idempotence.class);
                System.out.println("saved " + save(idempotence) + " then " + save(idempotence));
            }
        }
    }
}
