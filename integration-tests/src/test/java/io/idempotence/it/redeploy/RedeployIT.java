package io.idempotence.it.redeploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.google.gson.Gson;
import feign.Feign;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.core.IntervalFunction;
import io.github.resilience4j.retry.Retry;
import io.idempotence.IdempotenceId;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.it.container.Http;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.DelayProxy;
import io.idempotence.server.redis.RedisOfAClass;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.lang.reflect.Constructor;
import java.net.Socket;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import kotlin.Unit;
import okhttp3.OkHttpClient;
import okio.ByteString;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.startup.Tomcat;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.UnifiedJedis;

/** A web application with libraries of its own, as it is deployed in production. */
@Tag("all")
class RedeployIT {
    private static final int TIMES = 10;

    /** One class of each library that is in {@code WEB-INF/lib}. */
    private static final List<Class<?>> LIBRARIES = List.of(
            Idempotence.class,
            IdempotenceId.class,
            CircuitBreaker.class,
            IntervalFunction.class,
            UnifiedJedis.class,
            GenericObjectPool.class,
            Gson.class,
            IdempotentFeign.class,
            Feign.class,
            Retry.class);

    private static final List<Class<?>> OKHTTP = List.of(OkHttpClient.class, ByteString.class, Unit.class);

    @RegisterExtension
    static final RedisOfAClass redis = new RedisOfAClass();

    @TempDir
    Path directory;

    @Test
    void leavesNoThreadAndNoClassLoaderBehind() throws Exception {
        assertLeavesNothingBehind("feign", LIBRARIES, Duration.ofSeconds(50));
    }

    /** Threads of OkHttp and of Okio end when they had nothing to do for a minute. */
    @Test
    void leavesNoThreadAndNoClassLoaderBehindAMinuteAfterOkHttpWasUsed() throws Exception {
        List<Class<?>> libraries =
                Stream.of(LIBRARIES, OKHTTP).flatMap(List::stream).toList();
        assertLeavesNothingBehind("okhttp", libraries, Duration.ofMinutes(2));
    }

    private void assertLeavesNothingBehind(String client, List<Class<?>> libraries, Duration within) throws Exception {
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createDirectory(directory.resolve("tomcat")).toString());
        Connector connector = new Connector();
        connector.setProperty("address", "127.0.0.1");
        connector.setPort(0);
        tomcat.setConnector(connector);
        // It makes its host when it is asked for it, too late once it runs.
        tomcat.getHost();
        tomcat.start();
        try {
            Path application = application(libraries);
            for (int i = 0; i < TIMES; i++) {
                loaders.add(deployed(tomcat, application, client));
            }
            await().atMost(within).untilAsserted(() -> assertThat(threads()).isEmpty());
            linkAnotherRecord();
            await().atMost(within).pollInterval(Duration.ofMillis(100)).untilAsserted(() -> {
                System.gc();
                assertThat(loaders)
                        .allSatisfy(loader -> assertThat(loader.get()).isNull());
            });
        } finally {
            tomcat.stop();
            tomcat.destroy();
        }
    }

    /** Deploys it, has it work through requests, duplicates, calls of its own and an outage, and undeploys it. */
    private static WeakReference<ClassLoader> deployed(Tomcat tomcat, Path application, String client)
            throws IOException {
        try (DelayProxy wire = new DelayProxy(redis.server().port());
                RawServer provider = RawServer.start(RedeployIT::refuseFirst)) {
            StandardContext context = new StandardContext();
            context.setPath("/app");
            context.setDocBase(application.toString());
            context.addLifecycleListener(new Tomcat.FixContextListener());
            context.addParameter("redis", wire.address());
            context.addParameter("namespace", "t-" + UUID.randomUUID());
            context.addParameter("provider", provider.url());
            context.addParameter("client", client);
            context.addApplicationListener(WebApplication.class.getName());
            tomcat.getHost().addChild(context);
            ClassLoader loader = context.getLoader().getClassLoader();
            try {
                assertThat(loader.loadClass(Idempotence.class.getName())).isNotSameAs(Idempotence.class);
            } catch (ClassNotFoundException e) {
                throw new IllegalStateException(e);
            }
            URI uri = URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/app/payments");
            String id = UUID.randomUUID().toString();
            List<CompletableFuture<HttpResponse<byte[]>>> attempts = Stream.of(1, 2, 3)
                    .map(n -> Http.sendAsync(Http.request("POST", uri, id, "{}", "Prefer", "wait=60")))
                    .toList();
            assertThat(attempts)
                    .allSatisfy(
                            attempt -> assertThat(attempt.join().statusCode()).isEqualTo(422));
            assertThat(Http.text(Http.send(Http.request("GET", uri, null, "")))).isEqualTo("created,created");
            wire.close();
            for (int n = 0; n < 12; n++) {
                assertThat(Http.post(uri, "down-" + n, "{}").statusCode()).isEqualTo(503);
            }
            tomcat.getHost().removeChild(context);
            return new WeakReference<>(loader);
        }
    }

    /**
     * The JDK keeps the types of the record whose {@code equals}, {@code hashCode} or {@code toString} was linked last, in a cache
     * behind static fields of {@code java.lang.runtime.ObjectMethods}: JDK 17 for as long as it runs, JDK 25 until memory is short.
     * That would be one class loader, and nobody's fault here. A record of yet another class loader takes its place; JDK 25 caches
     * types of the JDK's own loaders elsewhere.
     */
    private static void linkAnotherRecord() throws Exception {
        URL classes = RedeployIT.class.getProtectionDomain().getCodeSource().getLocation();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {classes}, null)) {
            Class<?> record = loader.loadClass(Other.class.getName());
            Constructor<?> constructor = record.getDeclaredConstructor(record);
            constructor.setAccessible(true);
            Object other = constructor.newInstance((Object) null);
            assertThat(other).isEqualTo(constructor.newInstance((Object) null)).hasToString("Other[component=null]");
            assertThat(other.hashCode()).isZero();
        }
    }

    private record Other(Other component) {}

    /** So that each call pauses, and is made again. */
    private static void refuseFirst(RawRequest request, Socket socket) throws IOException {
        boolean first = "1".equals(request.header("Idempotency-Attempt"));
        String response = first
                ? "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                : "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 7\r\n\r\ncreated";
        socket.getOutputStream().write(response.getBytes(StandardCharsets.US_ASCII));
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getContextClassLoader() != null
                        && thread.getContextClassLoader().getClass().getName().contains("Webapp"))
                .map(Thread::getName)
                .toList();
    }

    private Path application(List<Class<?>> libraries) throws Exception {
        Path application = Files.createDirectory(directory.resolve("application"));
        Path lib = Files.createDirectories(application.resolve("WEB-INF/lib"));
        for (Class<?> library : libraries) {
            Path place = Path.of(
                    library.getProtectionDomain().getCodeSource().getLocation().toURI());
            Path jar = lib.resolve(library.getSimpleName() + ".jar");
            if (Files.isDirectory(place)) {
                pack(place, jar);
            } else {
                Files.copy(place, jar);
            }
        }
        for (String name : List.of(
                "WebApplication",
                "WebApplication$Calls",
                "WebApplication$Handler",
                "FeignCalls",
                "FeignCalls$Orders",
                "FeignCalls$AsyncOrders",
                "OkHttpCalls",
                "OkHttpCalls$1")) {
            String file = getClass().getPackageName().replace('.', '/') + "/" + name + ".class";
            Path copy = application.resolve("WEB-INF/classes").resolve(file);
            Files.createDirectories(copy.getParent());
            try (InputStream in = getClass().getClassLoader().getResourceAsStream(file)) {
                Files.copy(in, copy);
            }
        }
        return application;
    }

    private static void pack(Path directory, Path jar) throws IOException {
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar));
                Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                out.putNextEntry(new ZipEntry(directory.relativize(file).toString()));
                Files.copy(file, out);
            }
        }
    }
}
