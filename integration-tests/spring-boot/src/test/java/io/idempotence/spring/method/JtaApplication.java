package io.idempotence.spring.method;

import com.arjuna.ats.arjuna.common.arjPropertyManager;
import com.arjuna.ats.internal.arjuna.objectstore.VolatileStore;
import com.arjuna.ats.internal.jta.transaction.arjunacore.TransactionSynchronizationRegistryImple;
import io.agroal.api.AgroalDataSource;
import io.agroal.api.configuration.supplier.AgroalDataSourceConfigurationSupplier;
import io.agroal.api.security.NamePrincipal;
import io.agroal.narayana.NarayanaTransactionIntegration;
import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;
import org.postgresql.xa.PGXADataSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.jta.JtaTransactionManager;

/** An application with two databases of PostgreSQL, whose connections take part in the transactions of Narayana. */
class JtaApplication {
    static {
        // Nothing recovers these transactions after a crash of the JVM, so nothing is written to the working directory.
        arjPropertyManager.getObjectStoreEnvironmentBean().setObjectStoreType(VolatileStore.class.getName());
        arjPropertyManager.getCoordinatorEnvironmentBean().setTransactionStatusManagerEnable(false);
    }

    @Bean(destroyMethod = "close")
    EmbeddedPostgres postgres() {
        return EmbeddedPostgreSql.start(settings -> settings.setServerConfig("max_prepared_transactions", "20"));
    }

    @Bean
    @Primary
    DataSource orders(EmbeddedPostgres postgres) throws SQLException {
        return pool(postgres, "orders");
    }

    @Bean
    DataSource stock(EmbeddedPostgres postgres) throws SQLException {
        return pool(postgres, "stock");
    }

    private static DataSource pool(EmbeddedPostgres postgres, String database) throws SQLException {
        JdbcTemplate admin = new JdbcTemplate(postgres.getPostgresDatabase());
        admin.execute("create database " + database);
        JdbcTemplate jdbc = new JdbcTemplate(postgres.getDatabase("postgres", database));
        jdbc.execute("create table effect (id varchar(100))");
        jdbc.execute("create table late (id varchar(100), unique (id) deferrable initially deferred)");
        return AgroalDataSource.from(new AgroalDataSourceConfigurationSupplier()
                .connectionPoolConfiguration(pool -> pool.maxSize(10)
                        .acquisitionTimeout(Duration.ofMinutes(1))
                        .transactionIntegration(new NarayanaTransactionIntegration(
                                com.arjuna.ats.jta.TransactionManager.transactionManager(),
                                new TransactionSynchronizationRegistryImple()))
                        .connectionFactoryConfiguration(factory -> factory.connectionProviderClass(PGXADataSource.class)
                                .jdbcUrl(postgres.getJdbcUrl("postgres", database))
                                .principal(new NamePrincipal("postgres")))));
    }

    @Bean
    @Primary
    JtaTransactionManager transactionManager() {
        return new JtaTransactionManager(
                com.arjuna.ats.jta.UserTransaction.userTransaction(),
                com.arjuna.ats.jta.TransactionManager.transactionManager());
    }
}
