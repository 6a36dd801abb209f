package io.idempotence.server.redis;

import io.idempotence.server.redis.internal.jedis.RedisConnector;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionTimeoutException;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A real Redis server with the binary of {@link RedisBinary}, on a free port of the loopback address, as a separate process. It can be
 * killed and started again on the same port. Closing it stops it and removes its directory.
 */
public final class EmbeddedRedis implements AutoCloseable {
    private static final Duration START_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration PATIENCE = Duration.ofSeconds(40);
    private static final int PORT_ATTEMPTS = 10;
    // The bus of a Cluster node is 10,000 above its port.
    private static final int MAX_PORT = 55_535;

    private final String binary;
    private final Path directory;
    private final int port;
    private final List<String> options;
    private Process process;

    private EmbeddedRedis(String binary, Path directory, int port, List<String> options, Process process) {
        this.binary = binary;
        this.directory = directory;
        this.port = port;
        this.options = options;
        this.process = process;
    }

    /**
     * Starts a server that keeps nothing over a restart.
     *
     * @param options further ones of redis-server, as {@code "--maxmemory", "2mb"}
     */
    public static EmbeddedRedis start(String... options) {
        return startWith(RedisBinary.chosen(), List.of("--save", ""), options);
    }

    /** Starts a Redis 7.0 that keeps nothing over a restart, whatever version this run is about. */
    static EmbeddedRedis startVersion7(String... options) {
        return startWith(RedisBinary.VERSION_7_0.path(), List.of("--save", ""), options);
    }

    /** Starts a server whose every write is on disk before its reply. */
    public static EmbeddedRedis startPersistent(String... options) {
        return startWith(
                RedisBinary.chosen(), List.of("--save", "", "--appendonly", "yes", "--appendfsync", "always"), options);
    }

    /** Starts a server that copies another one, and waits until it does. */
    static EmbeddedRedis startReplicaOf(EmbeddedRedis primary) {
        EmbeddedRedis replica = start("--replicaof", primary.host(), Integer.toString(primary.port()));
        try {
            Awaitility.await().atMost(Duration.ofMinutes(1)).until(primary::hasReplica);
            primary.awaitCopied();
            return replica;
        } catch (RuntimeException e) {
            replica.close();
            throw e;
        }
    }

    /** Waits until a replica has what is written now. */
    public void awaitCopied() {
        try (Jedis jedis = jedis()) {
            jedis.set("other:copied", "");
            Awaitility.await().atMost(Duration.ofMinutes(1)).until(() -> jedis.waitReplicas(1, 1_000) == 1);
        }
    }

    /** Starts a Sentinel that watches a primary. */
    static EmbeddedRedis startSentinel(String name, EmbeddedRedis primary) {
        return startSentinel(name, primary, EmbeddedRedisSentinel.PATIENT);
    }

    /** The same. The Sentinel regards a primary as dead after that time without a reply. */
    static EmbeddedRedis startSentinel(String name, EmbeddedRedis primary, Duration downAfter) {
        try {
            Path directory = Files.createTempDirectory("embedded-redis");
            Path configuration = EmbeddedRedisSentinel.configuration(directory, primary, name, downAfter);
            return startWith(RedisBinary.chosen(), directory, List.of(configuration.toString(), "--sentinel"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static EmbeddedRedis startWith(String binary, List<String> basic, String... options) {
        List<String> all = new ArrayList<>(basic);
        // Redis 7 would wait 5 seconds for more replicas before it copies to the first one.
        all.addAll(List.of("--repl-diskless-sync-delay", "0"));
        all.addAll(List.of(options));
        try {
            return startWith(binary, Files.createTempDirectory("embedded-redis"), all);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static EmbeddedRedis startWith(String binary, Path directory, List<String> options) {
        try {
            for (int attempt = 1; ; attempt++) {
                int port = freePort();
                Process process = launch(binary, directory, port, options);
                EmbeddedRedis redis = new EmbeddedRedis(binary, directory, port, options, process);
                if (redis.awaitReply()) {
                    return redis;
                }
                redis.kill();
                if (attempt == PORT_ATTEMPTS) {
                    throw new IllegalStateException("redis-server did not start: " + redis.log());
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** {@code 127.0.0.1} */
    public String host() {
        return "127.0.0.1";
    }

    /** The same over restarts. */
    public int port() {
        return port;
    }

    /** A new storage on it, which the caller closes. */
    public RedisIdempotenceStorage connect() {
        return connect(address());
    }

    /** A storage that waits longer than a busy machine pauses. For tests that are not about its timeouts. */
    public static RedisIdempotenceStorage connect(String addresses) {
        return builder(addresses).build();
    }

    /** A builder of a storage that waits as long as that of {@link #connect(String)}. */
    static RedisIdempotenceStorage.Builder builder(String addresses) {
        return RedisIdempotenceStorage.builder(addresses)
                .client(patientClient().build())
                .pool(patientPool());
    }

    /** The same for a URI. */
    static RedisIdempotenceStorage.Builder builder(URI uri) {
        return RedisIdempotenceStorage.builder(uri).timeouts(PATIENCE, PATIENCE).pool(patientPool());
    }

    /** The settings of a client that waits for replies longer than a busy machine pauses. */
    static DefaultJedisClientConfig.Builder patientClient() {
        return DefaultJedisClientConfig.builder().timeoutMillis((int) PATIENCE.toMillis());
    }

    /** The settings of a pool whose callers wait for connections longer than a busy machine pauses. */
    static ConnectionPoolConfig patientPool() {
        ConnectionPoolConfig pool = RedisConnector.defaultPoolConfig();
        pool.setMaxWait(PATIENCE);
        return pool;
    }

    /** {@code host:port}, as {@link RedisIdempotenceStorage#connect(String)} takes it. */
    public String address() {
        return host() + ":" + port;
    }

    /** A new connection of its own, to look at or break things; the caller closes it. */
    public Jedis jedis() {
        return new Jedis(
                new HostAndPort(host(), port),
                DefaultJedisClientConfig.builder()
                        .timeoutMillis((int) PATIENCE.toMillis())
                        .build());
    }

    /** Whether another server copies this one by now. */
    boolean hasReplica() {
        try (Jedis jedis = jedis()) {
            return jedis.info("replication").contains("state=online");
        }
    }

    /**
     * Ends the server at once, by SIGKILL to its own process and to those it has started, which rewrite its files. Does nothing if it is not
     * running.
     */
    public void kill() {
        List<ProcessHandle> rewriting = process.descendants().toList();
        process.destroyForcibly();
        rewriting.forEach(ProcessHandle::destroyForcibly);
        awaitEnd();
        rewriting.forEach(child -> child.onExit().join());
    }

    /** Starts the server again on its port, after {@link #kill()} or by ending it first. What it had on disk is there again. */
    public void restart() {
        kill();
        try {
            // Another process may have got its port meanwhile, and has it for a moment.
            Awaitility.await("redis-server starts again on port " + port)
                    .pollInSameThread()
                    .pollDelay(Duration.ZERO)
                    .pollInterval(Duration.ofMillis(100))
                    .atMost(Duration.ofMinutes(2))
                    .until(this::startsAgain);
        } catch (ConditionTimeoutException e) {
            throw new IllegalStateException("redis-server did not start again: " + log(), e);
        }
    }

    private boolean startsAgain() {
        try {
            process = launch(binary, directory, port, options);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        if (awaitReply()) {
            return true;
        }
        kill();
        return false;
    }

    /** Keeps the server from replying while its connections stay open (SIGSTOP), until {@link #resume()}. */
    public void pause() {
        signal("STOP");
    }

    /** Undoes {@link #pause()}. */
    public void resume() {
        signal("CONT");
    }

    @Override
    public void close() {
        kill();
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void signal(String name) {
        try {
            new ProcessBuilder("kill", "-" + name, Long.toString(process.pid()))
                    .inheritIO()
                    .start()
                    .waitFor();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Process launch(String binary, Path directory, int port, List<String> options) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(binary);
        boolean withFile = !options.isEmpty() && !options.get(0).startsWith("--");
        if (withFile) {
            command.add(options.get(0));
        }
        command.addAll(List.of("--bind", "127.0.0.1", "--port", Integer.toString(port)));
        command.addAll(List.of("--dir", directory.toString(), "--daemonize", "no"));
        command.addAll(withFile ? options.subList(1, options.size()) : options);
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("log").toFile())
                .start();
        // A test run that is ended early leaves no server behind.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        return process;
    }

    private boolean awaitReply() {
        long deadline = System.nanoTime() + START_TIMEOUT.toNanos();
        while (process.isAlive() && System.nanoTime() < deadline) {
            try (Jedis jedis = jedis()) {
                // Another server may have taken the port: the reply must be from our own process.
                String info = jedis.info("server");
                if (info.contains("process_id:" + process.pid() + "\r")) {
                    return true;
                }
            } catch (JedisException e) {
                // not up yet, or still loading
            }
            try {
                process.waitFor(10, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
        return false;
    }

    private void awaitEnd() {
        try {
            process.waitFor();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private String log() {
        try {
            return Files.readString(directory.resolve("log"));
        } catch (IOException e) {
            return e.toString();
        }
    }

    static int freePort() throws IOException {
        while (true) {
            try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                if (socket.getLocalPort() <= MAX_PORT) {
                    return socket.getLocalPort();
                }
            }
        }
    }
}
