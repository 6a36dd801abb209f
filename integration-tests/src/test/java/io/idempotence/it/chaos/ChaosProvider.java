package io.idempotence.it.chaos;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.UUID;
import org.slf4j.LoggerFactory;

/**
 * A provider in a process of its own. Each execution of a call is a line in the ledger, which nothing keeps from being written twice.
 * Arguments: the address of Redis, the ledger, whether the filter is installed, the lease.
 */
final class ChaosProvider {
    static final String PATH = "/effects";
    static final int REJECTED = 422;

    private ChaosProvider() {}

    public static void main(String[] args) {
        // Nobody reads what a storage that is down makes it say; a full pipe would stop it.
        ((Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME)).setLevel(Level.OFF);
        Path ledger = Path.of(args[1]);
        boolean isProtected = Boolean.parseBoolean(args[2]);
        Idempotence idempotence = Idempotence.builder(RedisIdempotenceStorage.connect(args[0]))
                .policy(IdempotencePolicy.builder()
                        .lease(Duration.parse(args[3]))
                        .build())
                .build();
        ServletServer server = JettyServer.start(
                context -> {
                    if (isProtected) {
                        IdempotenceFilter.install(context, idempotence, PATH);
                    }
                    context.addServlet(
                                    "effects",
                                    ServletServer.servlet((request, response) -> execute(request, response, ledger)))
                            .addMapping(PATH);
                },
                null);
        System.out.println("port " + server.port());
        System.out.flush();
    }

    private static void execute(HttpServletRequest request, HttpServletResponse response, Path ledger)
            throws IOException {
        Work work = Work.of(new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
        work.pause(work.millisBefore());
        response.setContentType("text/plain");
        if (work.kind() == Work.Kind.REJECTED) {
            response.setStatus(REJECTED);
            response.getOutputStream().print(work.call());
            return;
        }
        if (work.kind() == Work.Kind.FAILS_FIRST
                && IdempotenceFilter.execution(request)
                        .filter(execution -> execution.fence() == 1)
                        .isPresent()) {
            response.setStatus(500);
            return;
        }
        Effect effect = new Effect(UUID.randomUUID().toString(), work.call());
        // One write of a file that is opened to append: lines of two processes do not mix.
        Files.writeString(ledger, effect.line(), StandardOpenOption.APPEND);
        work.pause(work.millisAfter());
        response.setStatus(201);
        response.getOutputStream().print(effect.name());
    }
}
