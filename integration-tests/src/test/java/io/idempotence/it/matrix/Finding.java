package io.idempotence.it.matrix;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import io.idempotence.it.container.Container;
import io.idempotence.it.matrix.Matrix.Cell;
import io.idempotence.it.matrix.Matrix.Registration;
import io.idempotence.it.wire.RawResponse;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The result of one cell of the matrix.
 *
 * @param lost whether the other filter loses the response where ours is not there
 * @param first what the first caller sees
 * @param retry what its retry sees
 * @param waiting what a duplicate sees that has waited for the first caller
 * @param differences between what is seen and what should be; none of a good cell
 */
record Finding(
        Container container,
        Registration registration,
        Stack stack,
        HandlerKind kind,
        boolean lost,
        Set<Sight> first,
        Set<Sight> retry,
        Set<Sight> waiting,
        List<String> differences) {

    /** The response that a caller sees. */
    enum Sight {
        /** The response that comes without our filter. */
        SAME("same"),
        /** That, too, of which the other filter has lost a part or all. */
        LOST("lost"),
        /** The whole response, which is lost without our filter. */
        WHOLE("whole"),
        /** What filters in front make of the same response if its handler is synchronous and creates no session. */
        SYNCHRONOUS("synchronous"),
        /** The same without what a filter behind ours adds to an error page. */
        UNFILTERED("unfiltered"),
        /** That the handler ran and that its response is not there. */
        REFUSED("refused"),
        DIFFERENT("DIFFERENT");

        private final String title;

        Sight(String title) {
            this.title = title;
        }

        String title() {
            return title;
        }
    }

    static List<Finding> of(Container container, List<Cell> cells) {
        Map<String, Seen> without = new HashMap<>();
        for (Cell cell : cells) {
            without.put(key(cell.stack(), cell.kind()), Seen.of(cell.without()));
        }
        List<Finding> findings = new ArrayList<>();
        for (Cell cell : cells) {
            findings.add(new Judge(
                            without.get(key(cell.stack(), cell.kind())),
                            without.get(key(cell.stack(), cell.kind().plain())),
                            without.get(key(new Stack(Neighbour.NONE, Stack.Place.NONE), cell.kind())),
                            cell)
                    .judge(container));
        }
        return findings;
    }

    private static String key(Stack stack, HandlerKind kind) {
        return stack.path() + "/" + kind.path();
    }

    private static final class Judge {
        /** By default; others that a filter behind ours adds are not replayed. */
        private static final Set<String> KEPT = Set.of("content-type", "cache-control", "location", "x-handler");

        private final Seen without;
        private final Seen plain;
        private final Cell cell;
        private final boolean lost;
        private final List<String> differences = new ArrayList<>();

        Judge(Seen without, Seen plain, Seen alone, Cell cell) {
            this.without = without;
            this.plain = plain;
            this.cell = cell;
            this.lost = without.hasLost(alone);
        }

        Finding judge(Container container) {
            Set<Sight> first = EnumSet.of(first("first", cell.first()), first("first of a pair", cell.firstOfPair()));
            Set<Sight> retry = EnumSet.noneOf(Sight.class);
            Set<Sight> waiting = EnumSet.noneOf(Sight.class);
            if (isRefused(cell.retry())) {
                retry.add(Sight.REFUSED);
                runs(1);
            } else if (without.isServerError() && !isReplay(cell.retry())) {
                // The handler or a filter behind ours has failed: its ID is free again.
                retry.add(first("retry", cell.retry()));
                runs(2);
            } else {
                retry.add(replay("retry", cell.retry()));
                waiting.add(replay("waiting", cell.waiting()));
                runs(1);
            }
            return new Finding(
                    container,
                    cell.registration(),
                    cell.stack(),
                    cell.kind(),
                    lost,
                    first,
                    retry,
                    waiting,
                    differences);
        }

        private void runs(int expected) {
            if (cell.runs() != expected || cell.runsOfPair() != 1) {
                differs("handler", "ran " + cell.runs() + " and " + cell.runsOfPair() + " times");
            }
        }

        private Sight first(String which, RawResponse response) {
            if (isReplay(response)) {
                differs(which, "is a replay");
                return Sight.DIFFERENT;
            }
            Seen seen = Seen.of(response);
            if (without.isSameAs(seen)) {
                return lost ? Sight.LOST : Sight.SAME;
            }
            if (lost && mayBeWhole() && plain.isSameAs(seen)) {
                return Sight.WHOLE;
            }
            if (isErrorPageBehind() && unfiltered(without).isSameAs(unfiltered(seen))) {
                return Sight.UNFILTERED;
            }
            differs(which, without.difference(seen));
            return Sight.DIFFERENT;
        }

        private Sight replay(String which, RawResponse response) {
            Seen expected = replayed(without);
            Seen seen = replayed(Seen.of(response));
            if (isRefused(response)) {
                return Sight.REFUSED;
            }
            if (!isReplay(response)) {
                differs(which, "is no replay; " + expected.difference(seen));
                return Sight.DIFFERENT;
            }
            if (expected.isSameAs(seen)) {
                return lost ? Sight.LOST : Sight.SAME;
            }
            if (replayed(plain).isSameAs(seen)) {
                return lost ? Sight.WHOLE : Sight.SYNCHRONOUS;
            }
            if (isErrorPageBehind()
                    && (unfiltered(expected).isSameAs(unfiltered(seen))
                            || unfiltered(replayed(plain)).isSameAs(unfiltered(seen)))) {
                return Sight.UNFILTERED;
            }
            differs(which, expected.difference(seen));
            return Sight.DIFFERENT;
        }

        /** What a replay has of a response. */
        private Seen replayed(Seen response) {
            Seen seen = response.withoutSession();
            return switch (cell.stack().neighbour()) {
                // Jetty's compression sets it for a replayed error page, too.
                case CONTAINER_GZIP -> seen.withHeaders(name -> !name.equals("vary"));
                case SECURITY ->
                    cell.stack().place() == Stack.Place.BEHIND ? seen.withHeaders(KEPT::contains) : inFront(seen);
                default -> seen;
            };
        }

        /** Spring Security leaves out all three headers against caching where an error page has one of them. */
        private Seen inFront(Seen seen) {
            return cell.kind().column() == HandlerKind.Column.ERROR
                    ? seen.withHeaders(name -> !name.equals("pragma") && !name.equals("expires"))
                    : seen;
        }

        /**
         * Whether a response that is lost without our filter may come whole with it: a non-blocking handler and the filters in front write
         * at the same time, and in an ERROR dispatch our filter delivers what it holds.
         */
        private boolean mayBeWhole() {
            return cell.kind().column() == HandlerKind.Column.NONBLOCKING
                    || cell.kind().column() == HandlerKind.Column.ERROR;
        }

        /** Filters behind ours are in front of it in an ERROR dispatch for which it has mapped itself. */
        private boolean isErrorPageBehind() {
            return cell.registration() == Registration.REQUEST_ONLY
                    && cell.stack().place() == Stack.Place.BEHIND
                    && cell.kind().column() == HandlerKind.Column.ERROR;
        }

        private static Seen unfiltered(Seen seen) {
            return seen.withHeaders(name -> !name.equals("content-encoding") && !name.equals("vary"))
                    .withoutLength();
        }

        /** An ASYNC dispatch for which our filter is not mapped may end in a way that it does not see. */
        private boolean isRefused(RawResponse response) {
            String refusal = response.header(IdempotenceHeaders.IDEMPOTENCY_REFUSAL);
            return cell.registration() == Registration.REQUEST_ONLY
                    && cell.kind().column() == HandlerKind.Column.DISPATCH
                    && (Refusal.OUTCOME_UNKNOWN.code().equals(refusal)
                            || Refusal.RESULT_UNAVAILABLE.code().equals(refusal));
        }

        private static boolean isReplay(RawResponse response) {
            return "true".equals(response.header(IdempotenceHeaders.IDEMPOTENT_REPLAYED));
        }

        private void differs(String which, String difference) {
            differences.add(cell.registration() + " " + cell.kind() + ", " + which + ": " + difference);
        }
    }
}
