package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import feign.FeignException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.TestServer.Reply;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The tables of docs/ids.md: which ID is sent, who saves it, and whether the call begins in doubt. */
class ScopeCompositionTest extends FeignTestBase {
    private static final Path PAGE = Path.of("../docs/ids.md");
    private static final String NONE = "no scope";
    private static final String REFUSED = "refused";

    private final List<String> saved = new ArrayList<>();

    /**
     * One call in scopes.
     *
     * @param header the ID in the header argument; empty if there is none
     * @param expected the words of the page's cell; of a header argument that is sent, its ID first
     */
    record Call(String outer, String inner, String header, Set<String> expected) {}

    static Stream<Call> calls() {
        List<List<String>> scopes = table("| | no scope");
        List<List<String>> headers = table("| without it");
        List<String> inner = scopes.get(0);
        List<Call> calls = new ArrayList<>();
        for (List<String> row : scopes.subList(1, scopes.size())) {
            for (int column = 1; column < row.size(); column++) {
                String cell = row.get(column);
                for (String header : List.of("", "A", "B")) {
                    calls.add(new Call(
                            row.get(0), inner.get(column), header, words(expected(cell, header, headers), header)));
                }
            }
        }
        return calls.stream();
    }

    private static String expected(String cell, String header, List<List<String>> headers) {
        if (header.isEmpty() || cell.equals(REFUSED)) {
            return cell;
        }
        // The second table is about A, and B is no different.
        String ofA = cell.startsWith("B") ? "A" + cell.substring(1) : cell;
        List<String> row = headers.stream()
                .filter(candidate -> candidate.get(0).equals(ofA))
                .findFirst()
                .orElseThrow();
        return cell.startsWith(header) ? row.get(1).replaceFirst("^A", header) : row.get(2);
    }

    private static Set<String> words(String cell, String header) {
        return Set.of(cell.replace("the header's", header).split(", "));
    }

    private static List<List<String>> table(String firstCells) {
        try (Stream<String> lines = Files.lines(PAGE)) {
            return lines.dropWhile(line -> !line.startsWith(firstCells))
                    .takeWhile(line -> line.startsWith("|"))
                    .filter(line -> !line.startsWith("|---"))
                    .map(line -> Arrays.stream(line.substring(1).split("\\|"))
                            .map(cell -> cell.strip().replace("`", ""))
                            .toList())
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void inside(String scope, Runnable work) {
        IdempotenceScope.Work<Boolean, RuntimeException> returning = () -> {
            work.run();
            return true;
        };
        switch (scope) {
            case NONE -> work.run();
            case "saving" -> IdempotenceScope.saving(id -> saved.add(id.value()), returning);
            default -> {
                IdempotenceId id = IdempotenceId.of(scope.substring(scope.indexOf('(') + 1, scope.length() - 1));
                if (scope.startsWith("with")) {
                    IdempotenceScope.with(id, work);
                } else {
                    IdempotenceScope.resume(id, Instant.now().minusSeconds(60), returning);
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("calls")
    void scopesComposeAsDocumented(Call call) {
        // Of the first request of a call it returns "no"; of a call in doubt it returns nothing.
        server.respond(Reply.status(401));
        Orders orders = orders(fast().build());
        Throwable end = catchThrowable(() -> inside(
                call.outer,
                () -> inside(call.inner, () -> {
                    if (call.header.isEmpty()) {
                        orders.create("x");
                    } else {
                        orders.createAs(call.header);
                    }
                })));
        if (call.expected.contains(REFUSED)) {
            assertThat(end)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("resume")
                    .hasMessageContaining(call.header.isEmpty() || isRefusedWithoutHeader(call) ? "with" : "header");
            assertThat(server.requests()).isEmpty();
            assertThat(saved).isEmpty();
            return;
        }
        assertThat(end).isInstanceOf(call.expected.contains("in doubt") ? OutcomeUnknown.class : FeignException.class);
        assertThat(end instanceof OutcomeUnknown).isEqualTo(call.expected.contains("in doubt"));
        String sent = server.ids().get(0).replace("\"", "");
        if (call.expected.contains("new")) {
            assertThat(sent).hasSize(36);
        } else {
            assertThat(call.expected).contains(sent);
        }
        assertThat(Set.copyOf(saved)).isEqualTo(call.expected.contains("saved") ? Set.of(sent) : Set.of());
    }

    private static boolean isRefusedWithoutHeader(Call call) {
        return call.outer.startsWith("resume(A)") && call.inner.endsWith("(B)");
    }
}
