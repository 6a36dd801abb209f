package io.idempotence.it.fault;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A provider whose memory is small for what its callers send. Its handler holds before it responds. */
final class SmallProvider {
    private SmallProvider() {}

    public static void main(String[] args) {
        FaultyStorage storage = new FaultyStorage(IdempotenceStorage.inMemory());
        Idempotence idempotence = Idempotence.over(storage);
        AtomicInteger runs = new AtomicInteger();
        ServletServer server = TomcatServer.start(
                context -> {
                    IdempotenceFilter.builder(idempotence)
                            .maxWait(Duration.ofMinutes(1))
                            .build()
                            .install(context, "/payments");
                    context.addServlet("payments", ServletServer.servlet((request, response) -> {
                                int length = request.getInputStream().readAllBytes().length;
                                ProviderProcess.hold("here", List.of("here"));
                                response.setStatus(201);
                                response.getOutputStream().print(length + " bytes, run " + runs.incrementAndGet());
                            }))
                            .addMapping("/payments");
                    context.addServlet(
                                    "claims",
                                    ServletServer.servlet((request, response) -> response.getOutputStream()
                                            .print(storage.count(FaultyStorage.Call.CLAIM) + "")))
                            .addMapping("/claims");
                },
                null);
        ProviderProcess.say("port " + server.port());
    }
}
