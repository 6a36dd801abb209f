package io.idempotence.server.jdbc;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.awaitility.Awaitility;

/** A MySQL 8 server from a jar; it ends with this JVM. */
final class MySqlServer {
    private static final int PORT_ATTEMPTS = 3;
    private static final String ARCHIVE = "/mysql-Linux-amd64.tar.gz";

    private MySqlServer() {}

    static boolean isPossible() {
        String own = System.getenv().getOrDefault("LD_LIBRARY_PATH", "");
        boolean linux = System.getProperty("os.name").equals("Linux")
                && System.getProperty("os.arch").equals("amd64");
        return linux
                && Stream.concat(
                                Stream.of(own.split(":", -1)),
                                Stream.of("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"))
                        .filter(directory -> !directory.isEmpty())
                        .anyMatch(directory -> Files.exists(Path.of(directory, "libaio.so.1")));
    }

    /** Returns its JDBC URL. */
    static String start() {
        try {
            Path directory = Files.createTempDirectory("mysql");
            Path archive = directory.resolve("server.tar.gz");
            try (InputStream in = MySqlServer.class.getResourceAsStream(ARCHIVE)) {
                Files.copy(in, archive);
            }
            await(run("tar", "xzf", archive.toString(), "-C", directory.toString()));
            Files.delete(archive);
            Path data = directory.resolve("data");
            await(server(directory, data, "--initialize-insecure"));
            for (int attempt = 1; ; attempt++) {
                int port = freePort();
                Process server = server(
                        directory,
                        data,
                        "--bind-address=127.0.0.1",
                        "--port=" + port,
                        "--mysqlx=OFF",
                        "--socket=" + directory.resolve("socket"),
                        "--max-connections=200",
                        "--skip-log-bin",
                        "--innodb-flush-log-at-trx-commit=0");
                Runtime.getRuntime().addShutdownHook(new Thread(() -> end(server, directory)));
                String url = "jdbc:mysql://127.0.0.1:" + port + "/idem?user=root&createDatabaseIfNotExist=true";
                Awaitility.await().until(() -> !server.isAlive() || isReachable(url));
                if (server.isAlive()) {
                    return url;
                }
                // Another process may have taken its port.
                if (attempt == PORT_ATTEMPTS) {
                    throw new IllegalStateException("mysqld ended with " + server.exitValue());
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static boolean isReachable(String url) {
        try (Connection connection = DriverManager.getConnection(url)) {
            return connection.isValid(1);
        } catch (SQLException e) {
            return false;
        }
    }

    private static Process server(Path directory, Path data, String... options) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                directory.resolve("bin/mysqld").toString(),
                "--no-defaults",
                "--user=" + System.getProperty("user.name"),
                "--basedir=" + directory,
                "--datadir=" + data,
                // A server deletes everybody's temporary tables when it starts.
                "--tmpdir=" + directory));
        command.addAll(List.of(options));
        return run(command.toArray(String[]::new));
    }

    private static Process run(String... command) throws IOException {
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
    }

    private static void await(Process process) {
        int exit = process.onExit().join().exitValue();
        if (exit != 0) {
            throw new IllegalStateException(process.info() + " ended with " + exit);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private static void end(Process server, Path directory) {
        server.destroyForcibly().onExit().join();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
