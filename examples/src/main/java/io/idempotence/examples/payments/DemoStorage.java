package io.idempotence.examples.payments;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.function.Supplier;
import redis.embedded.RedisServer;

/** The storage in which the two providers remember IDs: each provider connects for itself. Closing stops what was started here. */
public final class DemoStorage implements AutoCloseable {
    private static final String HINT = "; use --redis host:port or --storage memory";

    private final String description;
    private final Supplier<IdempotenceStorage> connect;
    private final Runnable stop;

    DemoStorage(String description, Supplier<IdempotenceStorage> connect, Runnable stop) {
        this.description = description;
        this.connect = connect;
        this.stop = stop;
    }

    /**
     * A Redis of its own, a real one, on a free port. It is also stopped when the JVM is.
     *
     * @throws DemoStorageException if it cannot run here
     */
    public static DemoStorage embeddedRedis() {
        RedisServer redis;
        int port;
        try {
            port = freePort();
            redis = RedisServer.newRedisServer()
                    .port(port)
                    .bind("127.0.0.1")
                    .setting("save \"\"")
                    .setting("appendonly no")
                    .build();
            redis.start();
        } catch (IOException | RuntimeException e) {
            throw new DemoStorageException(
                    "the embedded Redis does not start on this machine: " + e.getMessage() + HINT, e);
        }
        Runnable stop = () -> {
            try {
                redis.stop();
            } catch (IOException e) {
                throw new DemoStorageException("the embedded Redis on port " + port + " did not stop", e);
            }
        };
        return checked("an embedded Redis (port " + port + ")", "127.0.0.1:" + port, stop, HINT);
    }

    /**
     * A Redis that is there already.
     *
     * @throws DemoStorageException if the address is wrong or nothing responds there
     */
    static DemoStorage redis(String address) {
        return checked(
                "the Redis at " + address + " (records of this run expire within 10 minutes)", address, () -> {}, "");
    }

    /** One storage in the memory of this process, which both providers share. */
    static DemoStorage memory() {
        IdempotenceStorage shared = IdempotenceStorage.inMemory();
        return new DemoStorage(
                "one storage in memory, which only works because both run in this process", () -> shared, () -> {});
    }

    private static DemoStorage checked(String description, String address, Runnable stop, String hint) {
        DemoStorage storage = new DemoStorage(description, () -> RedisIdempotenceStorage.connect(address), stop);
        try {
            storage.connect().close();
            return storage;
        } catch (IllegalArgumentException | StorageUnavailableException e) {
            storage.close();
            throw new DemoStorageException(e.getMessage() + hint, e);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** In words, for the first line of the demo. */
    String description() {
        return description;
    }

    /** A connection for one provider; the provider closes it. */
    public IdempotenceStorage connect() {
        return connect.get();
    }

    @Override
    public void close() {
        stop.run();
    }

    /** There is no storage to run with. */
    public static final class DemoStorageException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final String reason;

        DemoStorageException(String reason, Throwable cause) {
            super(reason, cause);
            this.reason = reason;
        }

        String reason() {
            return reason;
        }
    }
}
