package io.idempotence.it.fault;

import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A provider in a process of its own whose payment is a row in the database that has the records too. With the header {@code
 * X-Hold} its handler stops when it is {@code claimed}, {@code paid} or {@code committed}.
 */
final class TransactionalProvider {
    private TransactionalProvider() {}

    public static void main(String[] args) {
        PGSimpleDataSource database = new PGSimpleDataSource();
        database.setUrl(args[0]);
        JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(database)
                .createIfMissing()
                .inTransaction()
                .build();
        Idempotence idempotence = Idempotence.builder(storage)
                .policy(IdempotencePolicy.builder().lease(ProviderProcess.LEASE).build())
                .build();
        ServletServer server = JettyServer.start(
                context -> {
                    IdempotenceFilter.install(context, idempotence, "/payments");
                    context.addServlet("payments", ServletServer.servlet((request, response) -> {
                                String hold = request.getHeader("X-Hold");
                                IdempotentExecution execution =
                                        IdempotenceFilter.execution(request).orElseThrow();
                                ProviderProcess.hold(hold, List.of("claimed"));
                                try (Connection business = database.getConnection();
                                        Statement payment = business.createStatement()) {
                                    business.setAutoCommit(false);
                                    storage.markApplied(business, execution);
                                    payment.execute("INSERT INTO payment VALUES ('"
                                            + execution.id().value() + "')");
                                    ProviderProcess.hold(hold, List.of("paid"));
                                    business.commit();
                                } catch (SQLException e) {
                                    throw new IOException(e);
                                }
                                ProviderProcess.hold(hold, List.of("committed"));
                                response.setStatus(201);
                                response.getOutputStream().print("paid");
                            }))
                            .addMapping("/payments");
                },
                null);
        ProviderProcess.say("port " + server.port());
    }
}
