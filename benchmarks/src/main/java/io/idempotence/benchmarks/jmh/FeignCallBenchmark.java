package io.idempotence.benchmarks.jmh;

import feign.Client;
import feign.Feign;
import feign.Response;
import feign.Retryer;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.benchmarks.Payments;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** A Feign client whose HTTP client responds at once: what is left is Feign, and the client half. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class FeignCallBenchmark {
    private static final String ORDER = "{\"account\":\"DE02120300000000202051\",\"cents\":1999}";
    private static final byte[] BODY = "{\"state\":\"paid\"}".getBytes(StandardCharsets.UTF_8);
    private static final Map<String, Collection<String>> HEADERS =
            Map.of("Content-Type", List.of("application/json"), "Location", List.of("/payments/7f3c2a19"));

    private final IdempotenceIdGenerator ids = IdempotenceIdGenerator.uuid();
    private final Payments plain = builder().target(Payments.class, "http://localhost");
    private final Payments ours = IdempotentFeign.install(
                    builder(), IdempotenceClientConfig.builder().build())
            .target(Payments.class, "http://localhost");

    private static Feign.Builder builder() {
        Client client = (request, options) -> Response.builder()
                .status(201)
                .reason("Created")
                .request(request)
                .headers(HEADERS)
                .body(BODY)
                .build();
        return Feign.builder().client(client).retryer(Retryer.NEVER_RETRY);
    }

    /** Feign alone. */
    @Benchmark
    public String plain() {
        return plain.pay(ORDER);
    }

    /** Feign, and an ID that the caller makes and gives as a header. */
    @Benchmark
    public String plainWithId() {
        return plain.pay(ids.generateId().value(), ORDER);
    }

    /** Feign with the client half, which makes an ID. */
    @Benchmark
    public String ours() {
        return ours.pay(ORDER);
    }
}
