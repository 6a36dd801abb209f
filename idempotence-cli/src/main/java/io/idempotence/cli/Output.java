package io.idempotence.cli;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.idempotence.internal.Durations;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;

/** The output of a command, as a table or as JSON. Each record is written as soon as it is found. */
final class Output {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream out;
    private final boolean json;
    private long rows;

    Output(PrintStream out, boolean json) {
        this.out = out;
        this.json = json;
    }

    boolean isJson() {
        return json;
    }

    /** Writes one record of a list. {@code kind} is what the ID was used for, or empty. */
    void row(String kind, IdempotenceRecord record) {
        if (json) {
            Map<String, Object> fields = new LinkedHashMap<>();
            if (!kind.isEmpty()) {
                fields.put("kind", kind);
            }
            fields.putAll(record.fields());
            out.print((rows == 0 ? "[\n" : ",\n") + text(fields));
        } else {
            String key = "%-" + record.key().value().length() + "s";
            String kindColumn = kind.isEmpty() ? "" : "%-9s";
            String form = key + "  " + kindColumn + "%-11s  %5s  %-13s  %-10s  %s%n";
            if (rows == 0) {
                out.printf(
                        form,
                        cells(kind, "KEY", "KIND", "STATE", "FENCE", "UNCERTAIN FOR", "LEASE LEFT", "RETENTION LEFT"));
            }
            boolean running = record.state() == State.IN_PROGRESS;
            out.printf(
                    form,
                    cells(
                            kind,
                            record.key().value(),
                            kind,
                            record.state().label(),
                            Long.toString(record.fence()),
                            record.isUncertain() ? Durations.shown(record.uncertainFor()) : "-",
                            running ? Durations.shown(record.leaseLeft()) : "-",
                            Durations.shown(record.retentionLeft())));
        }
        rows++;
        // Ends a list whose reader has closed the output, as head does.
        if (out.checkError()) {
            throw new ClosedException();
        }
    }

    /** Ends a list. */
    void endOfRows() {
        if (json) {
            out.println(rows == 0 ? "[]" : "\n]");
        }
    }

    long rows() {
        return rows;
    }

    /** Writes the result of a command that changes or counts. */
    void object(Map<String, ?> fields) {
        out.println(text(fields));
    }

    void line(String text) {
        out.println(text);
    }

    private static Object[] cells(String kind, String key, String kindCell, String... others) {
        Object[] cells = new Object[others.length + (kind.isEmpty() ? 1 : 2)];
        cells[0] = key;
        if (!kind.isEmpty()) {
            cells[1] = kindCell;
        }
        System.arraycopy(others, 0, cells, cells.length - others.length, others.length);
        return cells;
    }

    private static String text(Map<String, ?> fields) {
        try {
            return JSON.writeValueAsString(fields);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The end of a list whose rows nobody reads. */
    static final class ClosedException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        ClosedException() {
            super("the output is closed", null, false, false);
        }
    }
}
