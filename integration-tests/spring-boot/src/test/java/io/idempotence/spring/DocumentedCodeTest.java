package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Java code of the pages for Spring, messages and JDBC compiles, as members or statements of a class that has their names. */
class DocumentedCodeTest {
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```java\n(.*?)^```$");
    private static final List<String> PAGES = List.of(
            "spring.md",
            "spring.zh-CN.md",
            "spring-client.md",
            "spring-client.zh-CN.md",
            "messages.md",
            "storage-jdbc.md");

    private static final String ELLIPSIS = "{ … }";

    private static final String IMPORTS = Stream.of(
                    "io.idempotence",
                    "io.idempotence.client",
                    "io.idempotence.client.feign",
                    "io.idempotence.server",
                    "io.idempotence.server.jdbc",
                    "io.idempotence.server.storage",
                    "io.idempotence.spring.method",
                    "java.sql",
                    "java.time",
                    "javax.sql",
                    "org.springframework.cloud.openfeign",
                    "org.springframework.context.annotation",
                    "org.springframework.core.task",
                    "org.springframework.core.task.support",
                    "org.springframework.kafka.annotation",
                    "org.springframework.kafka.core",
                    "org.springframework.kafka.listener",
                    "org.springframework.stereotype",
                    "org.springframework.util.backoff",
                    "org.springframework.web.bind.annotation")
            .map(name -> "import " + name + ".*;\n")
            .collect(Collectors.joining());

    /** What a reader has in his own code. */
    private static final String NAMES = """
            abstract class Names {
                Idempotence idempotence;
                IdempotencePolicy policy;
                IdempotenceId id;
                DataSource dataSource;
                String tenant;
                byte[] body;
                Order order;

                abstract String charge(byte[] body);

                abstract void pay(Connection connection, Order order);

                record Order(String id) {}

                record OrderPlaced(Order order, String id) {}

                record Payment(String id) {}

                record Receipt(String id) {}

                static class NoMoneyException extends RuntimeException {}

                interface PaymentClient {
                    String pay(String order);
                }
            }
            """;

    @TempDir
    private Path classes;

    /** In one run of the compiler, which reads the class path once. */
    @Test
    void compiles() throws IOException {
        List<JavaFileObject> sources = new ArrayList<>();
        for (String page : PAGES) {
            Matcher blocks = BLOCK.matcher(Files.readString(Path.of("../../docs", page)));
            int before = sources.size();
            while (blocks.find()) {
                sources.add(source(page.replaceAll("\\W", "_") + sources.size(), blocks.group(1)));
            }
            assertThat(sources).as(page).hasSizeGreaterThan(before);
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter errors = new StringWriter();
        List<String> options = List.of("-proc:none", "-parameters", "-d", classes.toString());
        assertThat(compiler.getTask(errors, null, null, options, null, sources).call())
                .as(errors.toString())
                .isTrue();
    }

    private static JavaFileObject source(String name, String block) {
        String whole = block.replace(ELLIPSIS, "{ throw new UnsupportedOperationException(); }");
        boolean isMember = whole.startsWith("@");
        String body = isMember ? whole : "void run() throws Exception {\n" + whole + "}\n";
        String code = IMPORTS
                + NAMES.replace("class Names", "class " + name)
                        .replaceFirst("\n}\n$", "\n\n" + Matcher.quoteReplacement(body) + "}\n");
        return new SimpleJavaFileObject(URI.create("string:///" + name + ".java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return code;
            }
        };
    }
}
