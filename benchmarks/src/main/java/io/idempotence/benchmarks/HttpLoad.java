package io.idempotence.benchmarks;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/**
 * Posts the same payment again and again, each time under a new ID, over kept connections with one thread each. Bytes in, bytes out:
 * an HTTP client would cost more than what is measured.
 */
final class HttpLoad implements Variant.Load {
    private static final AtomicLong NEXT_ID = new AtomicLong();
    private static final String RUN = UUID.randomUUID().toString().substring(0, 20);
    private static final String BODY = "{\"account\":\"DE02120300000000202051\",\"cents\":1999}";
    private static final byte[] CREATED = "HTTP/1.1 201 ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] END = "\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private final int port;
    private final String path;
    private final int connections;

    HttpLoad(int port, String path, int connections) {
        this.port = port;
        this.path = path;
        this.connections = connections;
    }

    @Override
    public Sample run(Duration duration) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(connections);
        try {
            long start = System.nanoTime();
            long end = start + duration.toNanos();
            List<Callable<Histogram>> callers = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                callers.add(() -> callUntil(end));
            }
            Histogram all = new Histogram(3);
            for (Future<Histogram> caller : threads.invokeAll(callers)) {
                all.add(caller.get());
            }
            return new Sample(System.nanoTime() - start, all);
        } finally {
            threads.shutdown();
        }
    }

    private Histogram callUntil(long end) throws IOException {
        Histogram latencies = new Histogram(3);
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(10_000);
            Connection connection = new Connection(socket.getInputStream(), socket.getOutputStream(), path);
            long before = System.nanoTime();
            while (before < end) {
                connection.call();
                long after = System.nanoTime();
                latencies.recordValue(after - before);
                before = after;
            }
        }
        return latencies;
    }

    private static final class Connection {
        private static final int COUNTER_DIGITS = 16;

        private final InputStream in;
        private final OutputStream out;
        private final byte[] request;
        private final int counterEnd;
        private final byte[] answer = new byte[4096];

        Connection(InputStream in, OutputStream out, String path) {
            this.in = in;
            this.out = out;
            String before = "POST " + path
                    + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                    + BODY.length() + "\r\nIdempotency-Key: " + RUN + "0".repeat(COUNTER_DIGITS);
            this.request = (before + "\r\n\r\n" + BODY).getBytes(StandardCharsets.US_ASCII);
            this.counterEnd = before.length();
        }

        /** One request; the answer must be a 201 without a body. */
        void call() throws IOException {
            long counter = NEXT_ID.getAndIncrement();
            for (int i = 1; i <= COUNTER_DIGITS; i++, counter >>>= 4) {
                request[counterEnd - i] = (byte) Character.forDigit((int) (counter & 15), 16);
            }
            out.write(request);
            int length = 0;
            do {
                int read = in.read(answer, length, answer.length - length);
                if (read < 0) {
                    throw new IOException("the server closed the connection");
                }
                length += read;
            } while (!isWhole(length));
            for (int i = 0; i < CREATED.length; i++) {
                if (answer[i] != CREATED[i]) {
                    throw new IOException(new String(answer, 0, length, StandardCharsets.US_ASCII));
                }
            }
        }

        private boolean isWhole(int length) {
            for (int i = 1; i <= END.length; i++) {
                if (length < END.length || answer[length - i] != END[END.length - i]) {
                    return false;
                }
            }
            return true;
        }
    }
}
